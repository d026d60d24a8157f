//! What every object is called. A name has one written form only: what is read and printed again is the same text.
//!
//! | object | name |
//! |---|---|
//! | segment | `sessions/<session_id>/<min>-<max>-<16 hex digits of the object digest>.jsonl.zst` |
//! | state of a session | `sessions/<session_id>/state-<incarnation>-<offset>.pb` |
//! | unfinished parts of a session | `sessions/<session_id>/parts-<incarnation>-<offset>.pb` |
//! | coverage of a partition | `covered/<incarnation>-<partition>-<offset>` |
//! | erased session | `erased/<session_id>` |
//!
//! Numbers have 20 digits, so that a list by name is a list by number.

use std::fmt;
use std::str::FromStr;

use wakelog_model::SessionId;

use crate::Error;

/// What the names of all objects about sessions begin with.
pub const SESSIONS_PREFIX: &str = "sessions/";

/// What the names of all coverage objects begin with.
pub const COVERED_PREFIX: &str = "covered/";

/// What the names of all objects about erased sessions begin with.
pub const ERASED_PREFIX: &str = "erased/";

/// What the names of the states of a session go on with, after [`session_prefix`].
pub const STATES_PREFIX: &str = "state-";

/// The same of the unfinished parts.
pub const PARTS_PREFIX: &str = "parts-";

/// The version of the format of state objects (`wakelog.v1.ArchivedSession`): what is written, and all that is read.
pub const STATE_FORMAT: u32 = 1;

/// The same of the marks of erased sessions (`wakelog.v1.ErasedSession`).
pub const ERASED_FORMAT: u32 = 1;

/// The same of coverage objects (`wakelog.v1.CoveredPartition`).
pub const COVERED_FORMAT: u32 = 1;

/// Bytes of a mark or of a coverage object, at most.
pub const MARK_LIMIT: u64 = 64 * 1024;

const SEGMENT_SUFFIX: &str = ".jsonl.zst";
const SNAPSHOT_SUFFIX: &str = ".pb";

/// Decimal digits of a number within a name.
const DIGITS: usize = 20;

/// Characters of a foreign name that an error repeats.
const MOST_SHOWN: usize = 160;

/// What the names of all objects of a session begin with.
pub fn session_prefix(session: SessionId) -> String {
    format!("{SESSIONS_PREFIX}{session}/")
}

/// The name of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentKey {
    /// The session.
    pub session: SessionId,
    /// The first entry_seq in the segment.
    pub min_entry_seq: u64,
    /// The last entry_seq in the segment.
    pub max_entry_seq: u64,
    /// The first 8 bytes of the object digest.
    pub digest_start: [u8; 8],
}

impl SegmentKey {
    /// The name of the segment with this range and this object digest.
    pub fn new(session: SessionId, min_entry_seq: u64, max_entry_seq: u64, object_digest: &[u8; 32]) -> Self {
        let mut digest_start = [0; 8];
        digest_start.copy_from_slice(&object_digest[..8]);
        Self {
            session,
            min_entry_seq,
            max_entry_seq,
            digest_start,
        }
    }

    /// Whether an object with this digest may have this name.
    pub fn names(&self, object_digest: &[u8; 32]) -> bool {
        object_digest[..8] == self.digest_start
    }
}

impl fmt::Display for SegmentKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{SESSIONS_PREFIX}{}/{:020}-{:020}-{}{SEGMENT_SUFFIX}",
            self.session,
            self.min_entry_seq,
            self.max_entry_seq,
            hex::encode(self.digest_start)
        )
    }
}

impl FromStr for SegmentKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match ObjectName::parse(text) {
            ObjectName::Segment(key) => Ok(key),
            _ => Err(Error::Name {
                name: text.chars().take(MOST_SHOWN).collect(),
                what: "segment",
            }),
        }
    }
}

/// Which state of a session an object belongs to: that after the fold of every record below an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SnapshotKey {
    /// The session.
    pub session: SessionId,
    /// How many times the topic was made.
    pub incarnation: u32,
    /// The first offset of the session's partition that is not in the state.
    pub offset: u64,
}

/// The name of a coverage object: every session with records below the offset has a state at or after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CoveredKey {
    /// How many times the topic was made.
    pub incarnation: u32,
    /// The partition.
    pub partition: u32,
    /// The first offset that is not covered.
    pub offset: u64,
}

impl fmt::Display for CoveredKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{COVERED_PREFIX}{:020}-{:020}-{:020}",
            self.incarnation, self.partition, self.offset
        )
    }
}

/// What an object is, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ObjectName {
    /// Archived entries.
    Segment(SegmentKey),
    /// The fold's state of a session.
    State(SnapshotKey),
    /// The parts of the session's unfinished entry at that state.
    Parts(SnapshotKey),
    /// How far the states of a partition reach.
    Covered(CoveredKey),
    /// The session is erased.
    Erased(SessionId),
    /// Not one of ours.
    Unknown(String),
}

impl ObjectName {
    /// Reads a name. Whatever is not exactly one of ours is [`ObjectName::Unknown`].
    pub fn parse(text: &str) -> Self {
        match recognise(text) {
            Some(name) if name.to_string() == text => name,
            _ => Self::Unknown(text.to_owned()),
        }
    }

    /// The session that the object belongs to.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Self::Segment(key) => Some(key.session),
            Self::State(key) | Self::Parts(key) => Some(key.session),
            Self::Erased(session) => Some(*session),
            Self::Covered(_) | Self::Unknown(_) => None,
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segment(key) => fmt::Display::fmt(key, formatter),
            Self::State(key) => write_snapshot(formatter, STATES_PREFIX, key),
            Self::Parts(key) => write_snapshot(formatter, PARTS_PREFIX, key),
            Self::Covered(key) => fmt::Display::fmt(key, formatter),
            Self::Erased(session) => write!(formatter, "{ERASED_PREFIX}{session}"),
            Self::Unknown(text) => formatter.write_str(text),
        }
    }
}

fn write_snapshot(formatter: &mut fmt::Formatter<'_>, start: &str, key: &SnapshotKey) -> fmt::Result {
    write!(
        formatter,
        "{SESSIONS_PREFIX}{}/{start}{:020}-{:020}{SNAPSHOT_SUFFIX}",
        key.session, key.incarnation, key.offset
    )
}

/// May take more than the written form; the caller prints it again and compares.
fn recognise(text: &str) -> Option<ObjectName> {
    if let Some(rest) = text.strip_prefix(ERASED_PREFIX) {
        return Some(ObjectName::Erased(rest.parse().ok()?));
    }
    if let Some(rest) = text.strip_prefix(COVERED_PREFIX) {
        let [incarnation, partition, offset] = fields(rest)?;
        return Some(ObjectName::Covered(CoveredKey {
            incarnation: number(incarnation)?.try_into().ok()?,
            partition: number(partition)?.try_into().ok()?,
            offset: number(offset)?,
        }));
    }
    let (session, file) = text.strip_prefix(SESSIONS_PREFIX)?.split_once('/')?;
    let session = session.parse().ok()?;
    if let Some(rest) = file.strip_prefix(STATES_PREFIX) {
        return Some(ObjectName::State(snapshot(session, rest)?));
    }
    if let Some(rest) = file.strip_prefix(PARTS_PREFIX) {
        return Some(ObjectName::Parts(snapshot(session, rest)?));
    }
    let [min, max, digest] = fields(file.strip_suffix(SEGMENT_SUFFIX)?)?;
    let key = SegmentKey {
        session,
        min_entry_seq: number(min)?,
        max_entry_seq: number(max)?,
        digest_start: hex::decode(digest).ok()?.try_into().ok()?,
    };
    let holds_entries = key.min_entry_seq >= 1 && key.min_entry_seq <= key.max_entry_seq;
    holds_entries.then_some(ObjectName::Segment(key))
}

fn snapshot(session: SessionId, rest: &str) -> Option<SnapshotKey> {
    let [incarnation, offset] = fields(rest.strip_suffix(SNAPSHOT_SUFFIX)?)?;
    Some(SnapshotKey {
        session,
        incarnation: number(incarnation)?.try_into().ok()?,
        offset: number(offset)?,
    })
}

fn fields<const COUNT: usize>(text: &str) -> Option<[&str; COUNT]> {
    let fields: Vec<&str> = text.split('-').collect();
    fields.try_into().ok()
}

fn number(text: &str) -> Option<u64> {
    if text.len() != DIGITS {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests;
