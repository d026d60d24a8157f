//! The states of the sessions that a partition's last batches touched. What is in it is what the store holds: only a
//! known COMMIT puts something in, and any other end of a batch empties it.

use std::collections::HashMap;

use wakelog_model::SessionId;

use crate::states::{Known, States};

/// A bounded cache of session states.
#[derive(Debug)]
pub(crate) struct SessionCache {
    capacity: usize,
    batch: u64,
    sessions: HashMap<SessionId, Cached>,
}

#[derive(Debug)]
struct Cached {
    known: Known,
    last_batch: u64,
}

impl SessionCache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            batch: 0,
            sessions: HashMap::new(),
        }
    }

    /// A copy to fold into.
    pub(crate) fn copy(&self, session: SessionId) -> Option<Known> {
        self.sessions.get(&session).map(|cached| cached.known.clone())
    }

    /// Takes over the copies of a batch whose COMMIT is known.
    pub(crate) fn absorb(&mut self, states: States) {
        self.batch += 1;
        for (session, known) in states.into_own() {
            self.sessions.insert(
                session,
                Cached {
                    known,
                    last_batch: self.batch,
                },
            );
        }
        if self.sessions.len() > self.capacity {
            self.shrink();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.sessions.clear();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Drops the sessions that no recent batch touched, down to at most three quarters of the capacity, so that it is
    /// not done for each batch.
    fn shrink(&mut self) {
        let kept = self.capacity * 3 / 4;
        let mut ages: Vec<u64> = self.sessions.values().map(|cached| cached.last_batch).collect();
        let surplus = ages.len() - kept;
        let (_, newest_dropped, _) = ages.select_nth_unstable(surplus - 1);
        let newest_dropped = *newest_dropped;
        self.sessions
            .retain(|_, cached| cached.last_batch > newest_dropped);
    }
}

#[cfg(test)]
mod tests;
