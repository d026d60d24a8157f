//! What there is to do for one session.

use wakelog_model::SessionId;
use wakelog_store::SnapshotCause;

/// One piece of work; the same piece is never done twice at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// Look at the hot tail, and move out of it what is due.
    Tail(SessionId),
    /// Archive the session as a whole, so that it can be rebuilt.
    Snapshot(SessionId, SnapshotCause),
    /// Delete the objects of a session that was erased.
    Erasure(SessionId),
}

impl Job {
    pub(crate) fn session(&self) -> SessionId {
        match self {
            Self::Tail(session) | Self::Snapshot(session, _) | Self::Erasure(session) => *session,
        }
    }

    /// The name in logs and metrics.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Tail(_) => "tail",
            Self::Snapshot(..) => "snapshot",
            Self::Erasure(_) => "erasure",
        }
    }
}
