//! What can go wrong in the archive, whether it may have had an effect, and whether trying again may help.

use std::io;

use crate::objects::{Failure, RequestError};

/// Whether the effect of a failed call can have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It has not happened and will not happen.
    CertainlyNot,
    /// It may have happened, or may still happen.
    Unknown,
}

/// What can go wrong in the archive.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not the name of such an object.
    #[error("{name:?} is not a {what}")]
    Name {
        /// What was read, cut short.
        name: String,
        /// What it should have been.
        what: &'static str,
    },
    /// An entry does not follow the one before it: a segment has no hole.
    #[error("entry {found} can't be archived here, {expected} is next")]
    OutOfOrder {
        /// The entry_seq that is next.
        expected: u64,
        /// The entry_seq that came.
        found: u64,
    },
    /// The parts of an entry are not what an entry can have.
    #[error("entry {entry_seq} can't be archived: {reason}")]
    EntryMalformed {
        /// The entry.
        entry_seq: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The segment takes no further entry.
    #[error("the segment is full, entry {entry_seq} belongs into the next one")]
    SegmentFull {
        /// The entry that came.
        entry_seq: u64,
    },
    /// A segment has at least one entry.
    #[error("the segment has no entry")]
    SegmentEmpty,
    /// The segment's index has a version that this build does not know.
    #[error("segment {key}: its format has version {version}, this build knows {known}")]
    UnknownFormat {
        /// The object.
        key: String,
        /// The version in the object.
        version: u32,
        /// The version of this build.
        known: u32,
    },
    /// The object's bytes are not those of the segment that its name promises.
    #[error("segment {key}{}: {reason}", of_entry(*.entry_seq))]
    SegmentDamaged {
        /// The object.
        key: String,
        /// The entry that can't be read, where it is known.
        entry_seq: Option<u64>,
        /// What is wrong.
        reason: String,
    },
    /// The segment does not hold all of the entries that were asked for.
    #[error("segment {key} does not hold the entries {first} to {last}")]
    NotInSegment {
        /// The object.
        key: String,
        /// The first entry that was asked for.
        first: u64,
        /// The last entry that was asked for.
        last: u64,
    },
    /// The folder of the spool has no space left.
    #[error("no space left for the spool")]
    DiskFull(#[source] io::Error),
    /// The spool can't be written or read.
    #[error("the spool failed: {0}")]
    Spool(#[source] io::Error),
    /// The options of the object store can't be used.
    #[error("the object store's options can't be used: {reason}")]
    Configuration {
        /// What is wrong with them; never a secret.
        reason: String,
    },
    /// The object is larger than the caller takes, or than the store can hold; or a list is too long.
    #[error("{key:?} has {bytes} bytes or names, at most {limit} are taken")]
    TooLarge {
        /// The object, or the prefix of the list.
        key: String,
        /// Its size in bytes, or how many names there are at least.
        bytes: u64,
        /// The most that is taken.
        limit: u64,
    },
    /// A request to the object store failed, with all its retries.
    #[error(transparent)]
    Request(#[from] Box<RequestError>),
    /// A failure that a test asked for.
    #[error("failpoint {name}")]
    Failpoint {
        /// The failpoint.
        name: &'static str,
        /// Whether it stands behind a request that has an effect.
        effect: Effect,
    },
    /// The caller or this crate broke a rule. Nothing was written.
    #[error("this is a bug: {0}")]
    Bug(String),
}

impl Error {
    /// Whether the effect of the call can have happened.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Request(error) => error.effect,
            Self::Failpoint { effect, .. } => *effect,
            _ => Effect::CertainlyNot,
        }
    }

    /// Whether the same call may well succeed a little later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Request(error) => error.failure.is_retryable(),
            Self::DiskFull(_) => true,
            _ => false,
        }
    }

    /// What the object store's failure was, if it is one.
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::Request(error) => Some(error.failure),
            _ => None,
        }
    }

    pub(crate) fn of_spool(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull(error),
            _ => Self::Spool(error),
        }
    }
}

fn of_entry(entry_seq: Option<u64>) -> String {
    entry_seq.map_or_else(String::new, |entry_seq| format!(", entry {entry_seq}"))
}
