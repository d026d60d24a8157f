//! What a replay says.

use std::collections::HashSet;
use std::fmt;

use wakelog_model::SessionId;

/// What is missing is listed up to this number, and counted beyond.
pub(super) const LISTED: usize = 1_000;

/// What a replay did, and what it did not find.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayReport {
    /// The partitions that are folded up to the end of the log.
    pub partitions: Vec<ReplayedPartition>,
    /// Sessions that were restored from a state of the archive, this time.
    pub restored_sessions: u64,
    /// Segments that were recorded of them.
    pub restored_segments: u64,
    /// Sessions that are marked as erased.
    pub erased_sessions: u64,
    /// What neither the topic nor the archive has; the first of it.
    pub missing: Vec<Missing>,
    /// How much of it there is.
    pub missing_count: u64,
    /// Whether services may use the store.
    pub finished: bool,
    /// Whether a session can't be restored: its later records would be put aside, so nothing is folded.
    pub(crate) lacks_states: bool,
    /// Whether the store must not be used as it is: what is written next would get the numbers of entries that were lost.
    pub(crate) is_unsafe: bool,
}

impl ReplayReport {
    /// Whether everything that was ever acknowledged is there.
    pub fn is_complete(&self) -> bool {
        self.finished && self.missing_count == 0
    }

    /// A partition is folded, or further than before.
    pub(crate) fn folded(&mut self, folded: ReplayedPartition) {
        match self
            .partitions
            .binary_search_by_key(&folded.partition, |partition| partition.partition)
        {
            Ok(before) => {
                let before = &mut self.partitions[before];
                before.next_offset = folded.next_offset;
                before.records += folded.records;
                before.skipped += folded.skipped;
            }
            Err(place) => self.partitions.insert(place, folded),
        }
    }

    pub(crate) fn add(&mut self, missing: Missing) {
        self.missing_count += 1;
        match &missing {
            Missing::State { .. } => self.lacks_states = true,
            Missing::Unknown { .. } | Missing::Beyond { .. } => self.is_unsafe = true,
            _ => {}
        }
        if self.missing.len() < LISTED {
            self.missing.push(missing);
        }
    }

    /// Takes back that segments of these sessions are missing: they were erased meanwhile.
    pub(crate) fn forget_segments_of(&mut self, erased: &HashSet<SessionId>) {
        let before = self.missing.len();
        self.missing.retain(|missing| match missing {
            Missing::Segment { session, .. } => !erased.contains(session),
            _ => true,
        });
        self.missing_count -= (before - self.missing.len()) as u64;
    }

    /// The sessions of which a segment is missing.
    pub(crate) fn sessions_with_missing_segments(&self) -> Vec<SessionId> {
        let segments = self
            .missing
            .iter()
            .filter(|missing| matches!(missing, Missing::Segment { .. }));
        segments.filter_map(Missing::session).collect()
    }
}

/// A partition that is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayedPartition {
    /// The partition.
    pub partition: i32,
    /// The first offset that was folded, this time.
    pub from: i64,
    /// The log's end when it began: everything below it is in the store.
    pub next_offset: i64,
    /// Records that were read.
    pub records: u64,
    /// Those of them that a state of the archive held already, or that are of erased sessions.
    pub skipped: u64,
}

/// What neither the topic nor the archive has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// Records of a partition: the topic has dropped them, and the archive does not cover them, or was not asked. Of which sessions
    /// they were nobody can say; those that had a state are named besides.
    Records {
        /// The partition.
        partition: i32,
        /// The first offset.
        from: i64,
        /// The first offset that the topic still has.
        to: i64,
        /// Whether the archive was asked.
        from_archive: bool,
    },
    /// Records of a session, perhaps: its newest state is older than what is left of the topic.
    RecordsOf {
        /// The partition.
        partition: i32,
        /// The session.
        session: SessionId,
        /// The first offset that the state does not hold.
        from: i64,
        /// The first offset that the topic still has.
        to: i64,
    },
    /// A state, or the unfinished parts that belong to it: an object that is not what it should be.
    State {
        /// The session.
        session: SessionId,
        /// The object.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A segment that can't be used; entries of it that nothing else holds are named besides.
    Segment {
        /// The session.
        session: SessionId,
        /// The object.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Entries that are neither in the hot tail nor in a segment.
    Entries {
        /// The partition.
        partition: i32,
        /// The session.
        session: SessionId,
        /// The first entry.
        first: u64,
        /// The last entry.
        last: u64,
    },
    /// Entries that segments hold and that the topic does not lead to: records after them, or they themselves, are lost.
    Beyond {
        /// The partition.
        partition: i32,
        /// The session.
        session: SessionId,
        /// The first of these entries.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// Records of a session, of which there is neither a state nor a record that opens it: what came before is lost, and they were
    /// put aside.
    Unopened {
        /// The partition.
        partition: i32,
        /// The session.
        session: SessionId,
        /// The offset of the first of these records.
        first: i64,
        /// That of the last one.
        last: i64,
    },
    /// A session of which there are segments, but neither a state nor a record.
    Unknown {
        /// The session.
        session: SessionId,
        /// Its last archived entry.
        last: u64,
    },
}

impl Missing {
    /// The kind's stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Records { .. } => "records",
            Self::RecordsOf { .. } => "records_of_session",
            Self::State { .. } => "state",
            Self::Segment { .. } => "segment",
            Self::Entries { .. } => "entries",
            Self::Beyond { .. } => "beyond",
            Self::Unopened { .. } => "unopened_session",
            Self::Unknown { .. } => "unknown_session",
        }
    }

    /// The partition, where it is known.
    pub fn partition(&self) -> Option<i32> {
        match self {
            Self::Records { partition, .. }
            | Self::RecordsOf { partition, .. }
            | Self::Entries { partition, .. }
            | Self::Unopened { partition, .. }
            | Self::Beyond { partition, .. } => Some(*partition),
            Self::State { .. } | Self::Segment { .. } | Self::Unknown { .. } => None,
        }
    }

    /// The first and the last offset, or entry, that is missing.
    pub fn range(&self) -> Option<(u64, u64)> {
        match self {
            Self::Records { from, to, .. } | Self::RecordsOf { from, to, .. } => {
                Some((from.unsigned_abs(), (to - 1).unsigned_abs()))
            }
            Self::Entries { first, last, .. } | Self::Beyond { first, last, .. } => Some((*first, *last)),
            Self::Unopened { first, last, .. } => Some((first.unsigned_abs(), last.unsigned_abs())),
            Self::Unknown { last, .. } => Some((1, *last)),
            Self::State { .. } | Self::Segment { .. } => None,
        }
    }

    /// The session, where it is known.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Self::Records { .. } => None,
            Self::RecordsOf { session, .. }
            | Self::State { session, .. }
            | Self::Segment { session, .. }
            | Self::Entries { session, .. }
            | Self::Beyond { session, .. }
            | Self::Unopened { session, .. }
            | Self::Unknown { session, .. } => Some(*session),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Records {
                from,
                to,
                from_archive,
                ..
            } => write!(
                formatter,
                "the topic has dropped records {from} to {}, and the archive {}",
                to - 1,
                match from_archive {
                    true => "does not cover them",
                    false => "was not asked",
                }
            ),
            Self::RecordsOf { from, to, .. } => write!(
                formatter,
                "its state ends before record {from}, the topic begins at {to}: what came between is lost, if anything did"
            ),
            Self::State { key, reason, .. } => write!(formatter, "{key}: {reason}"),
            Self::Segment { key, reason, .. } => write!(formatter, "{key}: {reason}"),
            Self::Entries { first, last, .. } => write!(
                formatter,
                "entries {first} to {last} are neither in the topic nor in a segment"
            ),
            Self::Beyond { first, last, .. } => write!(
                formatter,
                "entries {first} to {last} are in segments, but the topic does not have their records"
            ),
            Self::Unopened { first, last, .. } => write!(
                formatter,
                "records {first} to {last} are put aside: there is neither a state of the session nor the record that opened it"
            ),
            Self::Unknown { last, .. } => write!(
                formatter,
                "segments hold its entries up to {last}, but there is neither a state nor a record of it"
            ),
        }
    }
}

/// What a replay is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayPhase {
    /// Lists what the archive has; counts sessions.
    Listing,
    /// Restores sessions; counts them.
    Restoring,
    /// Folds a partition; counts records, up to `total`.
    Folding {
        /// The partition.
        partition: i32,
    },
    /// Looks whether all entries are there; counts sessions.
    Checking,
}

/// How far a replay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayProgress {
    /// What it is doing.
    pub phase: ReplayPhase,
    /// How much of it is done.
    pub done: u64,
    /// Of how much; `None`: that is not known.
    pub total: Option<u64>,
}
