//! What `verify` says.

use std::fmt;

use wakelog_model::SessionId;

use super::differences::Differences;

/// Differences that a report lists, at most. It counts all of them.
pub const MAX_LISTED: usize = 100;

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyProgress {
    /// The partition that it is at, from 0.
    pub partition: i32,
    /// How many there are.
    pub partitions: i32,
    /// What it does there.
    pub phase: VerifyPhase,
    /// While folding, the next offset; while comparing, the sessions compared.
    pub done: u64,
    /// While folding, the offset to fold up to; while comparing, the sessions to compare, about.
    pub total: u64,
}

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyPhase {
    /// Folds the log into memory.
    Folding,
    /// Compares the store with that.
    Comparing,
}

/// What it found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Each partition.
    pub partitions: Vec<PartitionReport>,
    /// The first differences, at most [`MAX_LISTED`].
    pub differences: Vec<Difference>,
    /// All differences.
    pub difference_count: u64,
}

impl VerifyReport {
    /// Whether nothing differs. What is still moving is not known to differ: see [`VerifyReport::is_moving`].
    pub fn is_equal(&self) -> bool {
        self.difference_count == 0
    }

    /// Whether the store moved on too fast to compare everything.
    pub fn is_moving(&self) -> bool {
        self.partitions.iter().any(|partition| partition.moving)
    }

    pub(super) fn add(&mut self, (partition, differences): (PartitionReport, Differences)) {
        self.difference_count += partition.difference_count;
        let room = MAX_LISTED.saturating_sub(self.differences.len());
        self.differences
            .extend(differences.into_listed().into_iter().take(room));
        self.partitions.push(partition);
    }
}

/// What it found in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionReport {
    /// The partition.
    pub partition: i32,
    /// Up to where the log was folded, for the last comparison.
    pub next_offset: i64,
    /// Sessions that the log opens.
    pub sessions: u64,
    /// Parts that hot tail and archive must hold.
    pub parts: u64,
    /// Entries that have left the hot tail for the archive.
    pub archived_entries: u64,
    /// Records that must be in quarantine.
    pub quarantined: u64,
    /// Differences.
    pub difference_count: u64,
    /// Whether the store still moved on after the last comparison.
    pub moving: bool,
    /// Sessions that changed each time they were compared, so that nothing is said about them.
    pub unsettled_sessions: u64,
}

/// One thing that is not as the log says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The partition.
    pub partition: i32,
    /// The session; none for what is about the partition as a whole.
    pub session: Option<SessionId>,
    /// What differs.
    pub kind: DifferenceKind,
    /// What the log says, in words.
    pub expected: String,
    /// What the store says, in words.
    pub found: String,
}

/// What can differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DifferenceKind {
    /// Whether the session is there.
    Session,
    /// The fold's state of the session.
    State,
    /// What readers use of the session instead of its state.
    Column {
        /// The column, or the table beside it.
        column: &'static str,
    },
    /// A lifetime of the session.
    Lifetime {
        /// Its generation.
        generation: u64,
    },
    /// Whether a part is there, or what it says about itself.
    Part {
        /// The entry.
        entry_seq: u64,
        /// The part.
        part: u32,
    },
    /// The bytes of a part.
    Body {
        /// The entry.
        entry_seq: u64,
        /// The part.
        part: u32,
    },
    /// What the archive says of an entry that has left the hot tail.
    Archived {
        /// The entry.
        entry_seq: u64,
    },
    /// How many records are in quarantine for a reason.
    Quarantine {
        /// The reason.
        reason: String,
    },
    /// The record before the next offset.
    LastRecord,
}

impl DifferenceKind {
    /// A stable snake_case name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::State => "state",
            Self::Column { .. } => "column",
            Self::Lifetime { .. } => "lifetime",
            Self::Part { .. } => "part",
            Self::Body { .. } => "body",
            Self::Archived { .. } => "archived",
            Self::Quarantine { .. } => "quarantine",
            Self::LastRecord => "last_record",
        }
    }
}

impl fmt::Display for DifferenceKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session | Self::State => formatter.write_str(self.name()),
            Self::Column { column } => write!(formatter, "column {column}"),
            Self::Lifetime { generation } => write!(formatter, "lifetime {generation}"),
            Self::Part { entry_seq, part } => write!(formatter, "entry {entry_seq} part {part}"),
            Self::Body { entry_seq, part } => write!(formatter, "body of entry {entry_seq} part {part}"),
            Self::Archived { entry_seq } => write!(formatter, "archived entry {entry_seq}"),
            Self::Quarantine { reason } => write!(formatter, "quarantine ({reason})"),
            Self::LastRecord => formatter.write_str("last record"),
        }
    }
}
