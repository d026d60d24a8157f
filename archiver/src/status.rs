//! What the archiver is doing, for health pages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wakelog_model::SessionId;

/// Failing sessions that are remembered.
const MOST_FAILING: usize = 100;

/// What an archiver is doing. Clones see the same one.
#[derive(Debug, Clone, Default)]
pub struct StatusHandle(Arc<Mutex<Status>>);

#[derive(Debug, Default)]
struct Status {
    sharing: Option<String>,
    sweeping: Option<String>,
    failing: BTreeMap<SessionId, String>,
}

impl StatusHandle {
    /// What keeps it from its work, in one sentence; `None` if nothing does. That single sessions fail is no obstacle: see
    /// [`failing_sessions`](Self::failing_sessions).
    pub fn obstacle(&self) -> Option<String> {
        let status = self.lock();
        let sharing = status
            .sharing
            .as_ref()
            .map(|reason| format!("the archiver is not in its group: {reason}"));
        let sweeping = || {
            let reason = status.sweeping.as_ref();
            reason.map(|reason| format!("the archiver can't look for work: {reason}"))
        };
        sharing.or_else(sweeping)
    }

    /// Sessions whose work failed last time, with why; a hundred at most.
    pub fn failing_sessions(&self) -> BTreeMap<SessionId, String> {
        self.lock().failing.clone()
    }

    pub(crate) fn sharing(&self, failure: Option<String>) {
        self.lock().sharing = failure;
    }

    pub(crate) fn swept(&self, failure: Option<String>) {
        let mut status = self.lock();
        if failure.is_none() {
            // Whoever sweeps a share has one.
            status.sharing = None;
        }
        status.sweeping = failure;
    }

    pub(crate) fn failed(&self, session: SessionId, why: String) {
        let mut status = self.lock();
        if status.failing.len() < MOST_FAILING || status.failing.contains_key(&session) {
            status.failing.insert(session, why);
        }
    }

    pub(crate) fn succeeded(&self, session: SessionId) {
        self.lock().failing.remove(&session);
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
