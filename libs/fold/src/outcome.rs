//! What a record can come to.

use std::fmt;

use wakelog_proto::v1::AccessRole;

use crate::Malformed;

/// What [`crate::fold`] decided about one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The record changed the state.
    Applied(Change),
    /// The record was applied before. For its producer this is success; nothing is stored.
    Duplicate {
        /// True if the entry is older than the remembered window, so that equality could not be checked.
        stale: bool,
    },
    /// A part that comes too early. It is dropped: its writer was never acknowledged for it and sends it again.
    Gap {
        /// The lifetime_seq that comes next.
        expected_seq: u64,
        /// The part of it that comes next.
        expected_part: u32,
    },
    /// A bind that came too late, or too early. It changes nothing.
    BindLost {
        /// The current generation; 0: no lifetime yet.
        generation: u64,
    },
    /// The end of a lifetime that is not current, or no longer active.
    EndIgnored,
    /// The session, or its root session, is erased: counted, never kept.
    ErasedSession,
    /// The record is put aside and the partition moves on.
    Quarantined(Reason),
}

/// What an applied record changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The session exists from here on.
    SessionOpened,
    /// An account's role changed.
    AccessChanged {
        /// The account.
        account: String,
        /// Its role; `Unspecified` if it has none any more.
        role: AccessRole,
    },
    /// A new lifetime is current.
    LifetimeBound {
        /// The entry whose parts are deleted, because the superseded lifetime left it unfinished.
        discarded_entry_seq: Option<u64>,
    },
    /// A part is stored under (session, entry_seq, part).
    PartStored {
        /// The entry within the session.
        entry_seq: u64,
        /// The part.
        part: u32,
        /// True if the entry is complete, and so visible, with this part.
        completes_entry: bool,
    },
    /// The current lifetime has ended.
    LifetimeEnded,
    /// The session is erased.
    SessionErased,
}

/// Why a record is put aside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The record is wrong by itself.
    #[error("malformed: {0}")]
    Malformed(#[from] Malformed),
    /// The record is on another partition than the session is pinned to.
    #[error("the record is not on the session's partition")]
    WrongPartition,
    /// The session was opened before, and differently.
    #[error("the session was opened before, and differently")]
    SessionConflict,
    /// The session, or the lifetime, is not known.
    #[error("the session or the lifetime is not known")]
    Unbound,
    /// The lifetime was superseded.
    #[error("the lifetime was superseded")]
    Fenced,
    /// The lifetime met conflicting entries before.
    #[error("the lifetime has failed")]
    LifetimeFailed,
    /// Another writer's entries were applied in this lifetime.
    #[error("another writer holds the lifetime")]
    SecondWriter,
    /// The part contradicts what was applied. The lifetime has failed with it.
    #[error("conflict: {0}")]
    Conflict(ConflictKind),
}

impl Reason {
    /// The reason's stable name, in metrics and in the quarantine.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::WrongPartition => "wrong_partition",
            Self::SessionConflict => "session_conflict",
            Self::Unbound => "unbound",
            Self::Fenced => "fenced",
            Self::LifetimeFailed => "lifetime_failed",
            Self::SecondWriter => "second_writer",
            Self::Conflict(_) => "conflict",
        }
    }
}

/// How a part contradicts what was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConflictKind {
    /// The checkpoint flag is not that of the entry's earlier parts.
    CheckpointFlag,
    /// The last part's count is not the number of the entry's parts.
    PartCount,
    /// The last part's entry digest is not that of the entry's parts.
    EntryDigest,
    /// A part of the unfinished entry was applied before, and differently.
    PartAltered,
    /// The complete entry was applied before, and differently.
    EntryAltered,
}

impl fmt::Display for ConflictKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::CheckpointFlag => "the checkpoint flag is not that of the entry's earlier parts",
            Self::PartCount => "the part count is not the number of the entry's parts",
            Self::EntryDigest => "the entry digest is not that of the entry's parts",
            Self::PartAltered => "the part was applied before, and differently",
            Self::EntryAltered => "the entry was applied before, and differently",
        })
    }
}
