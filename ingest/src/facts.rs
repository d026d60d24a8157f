//! What the store says about a lifetime, and what follows from that alone.

use std::time::Duration;

use tokio::time::Instant;
use wakelog_model::WriterNonce;
use wakelog_proto::v1::LifetimeStatus;
use wakelog_store::LifetimeCursor;

#[cfg(test)]
pub(crate) mod tests;

/// A lifetime as the store had it at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The session's current generation.
    pub session_generation: u64,
    pub erased: bool,
    /// The nonce of the writer whose entry was applied first.
    pub nonce: Option<WriterNonce>,
    pub applied_seq: u64,
    pub status: LifetimeStatus,
    /// The highest generation that somebody was about to bind.
    pub binding_generation: u64,
    /// How long ago that was, by the database's clock.
    pub binding_raised_age: Duration,
}

impl From<&LifetimeCursor> for Standing {
    fn from(cursor: &LifetimeCursor) -> Self {
        Self {
            session_generation: cursor.session_generation,
            erased: cursor.erased,
            nonce: cursor.nonce,
            applied_seq: cursor.applied_seq,
            status: LifetimeStatus::try_from(cursor.status).unwrap_or(LifetimeStatus::Unspecified),
            binding_generation: cursor.binding_generation,
            binding_raised_age: cursor.binding_raised_age,
        }
    }
}

/// One read of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// `None`: the store does not know the lifetime.
    pub standing: Option<Standing>,
    /// When the read was started.
    pub read_at: Instant,
    /// The persister's next offset on the lifetime's partition, of the same moment as the standing: whatever lies below it is in
    /// the standing. Read *before* there was found to be none.
    pub next_offset: i64,
    /// The store has less of the partition than it once had, or may have. A later bind may be in what it lacks.
    pub may_lack_binds: bool,
}

/// A fact that nothing later can take back: the writer gets no further in this lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terminal {
    /// The session is erased, or there is no such session.
    NotFound,
    /// A later lifetime is current.
    Superseded { current: u64 },
    /// The lifetime met conflicting entries.
    Failed,
    /// Another writer's entry was applied first.
    SecondWriter,
}

impl Standing {
    /// What ends this writer for good, if anything. That the lifetime has ended does not: what was published before
    /// still counts.
    pub(crate) fn terminal(&self, generation: u64, nonce: Option<WriterNonce>) -> Option<Terminal> {
        if self.erased {
            return Some(Terminal::NotFound);
        }
        if self.session_generation > generation {
            return Some(Terminal::Superseded {
                current: self.session_generation,
            });
        }
        if self.status == LifetimeStatus::Failed {
            return Some(Terminal::Failed);
        }
        match (self.nonce, nonce) {
            (Some(applied), Some(own)) if applied != own => Some(Terminal::SecondWriter),
            _ => None,
        }
    }
}

/// Follows a raised binding generation until it lapses: the message time-out of its bind has passed, and the persister
/// then went beyond the partition's end, and the lifetime is still current.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BindWatch {
    generation: u64,
    /// When it was raised, by this process's clock; `None`: longer ago than that clock reaches.
    raised_at: Option<Instant>,
    /// The partition's end as of a moment after the time-out.
    target: Option<i64>,
    lapsed: bool,
}

/// The time of a raise is only estimated: a read takes a while.
const RAISED_AT_TOLERANCE: Duration = Duration::from_secs(1);

impl BindWatch {
    /// Takes a read of the store. Returns whether the partition's end is wanted now.
    pub(crate) fn observe(&mut self, own_generation: u64, facts: &Facts, message_timeout: Duration) -> bool {
        let Some(standing) = &facts.standing else {
            return false;
        };
        if standing.binding_generation <= own_generation {
            *self = Self::default();
            return false;
        }
        let raised_at = facts.read_at.checked_sub(standing.binding_raised_age);
        let raised_again = raised_at > self.raised_at.map(|before| before + RAISED_AT_TOLERANCE);
        if raised_again || standing.binding_generation != self.generation {
            let generation = standing.binding_generation;
            *self = Self {
                generation,
                raised_at,
                target: None,
                lapsed: false,
            };
        }
        if standing.binding_raised_age <= message_timeout {
            self.target = None;
            return false;
        }
        if self.lapsed {
            return false;
        }
        match self.target {
            None => true,
            Some(target) => {
                self.lapsed = facts.next_offset >= target;
                false
            }
        }
    }

    /// Takes the partition's end that was wanted for `generation`.
    pub(crate) fn partition_end(&mut self, generation: u64, end: i64) {
        if self.generation == generation && self.target.is_none() {
            self.target = Some(end);
        }
    }

    /// The generation that is followed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a bind may be on its way that a `LOG` ack could not see.
    pub(crate) fn holds_back_log_acks(&self, own_generation: u64, standing: &Standing) -> bool {
        let raised = standing.binding_generation > own_generation;
        raised && !(self.lapsed && self.generation == standing.binding_generation)
    }
}
