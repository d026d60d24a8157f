//! What goes into the archive's tables and comes out of them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use wakelog_model::SessionId;

use crate::rows::LifetimeRow;

/// What decides whether something of a session is to be archived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotTail {
    /// The session.
    pub session: SessionId,
    /// The partition that it is pinned to.
    pub partition: i32,
    /// Whether it, or a session above it, is erased.
    pub erased: bool,
    /// The last complete entry; 0 if none.
    pub last_entry_seq: u64,
    /// The last complete checkpoint; 0 if none.
    pub last_checkpoint_seq: u64,
    /// Whether entries before the last checkpoint are still in the hot tail.
    pub superseded_rows: bool,
    /// Plain bytes of the complete entries after the last checkpoint that are still in the hot tail.
    pub delta_bytes: u64,
}

/// Why a segment was archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    /// A checkpoint supersedes every entry of it; its rows were pruned.
    Superseded,
    /// It holds deltas that a resume body needs; their rows were pruned because there were too many.
    SafetyValve,
    /// A copy made when a lifetime ended; nothing was pruned.
    SessionEnd,
    /// A copy made before the topic drops the records; nothing was pruned.
    Retention,
}

impl SegmentKind {
    /// The kind as the database and metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Superseded => "superseded",
            Self::SafetyValve => "safety_valve",
            Self::SessionEnd => "session_end",
            Self::Retention => "retention",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [
            Self::Superseded,
            Self::SafetyValve,
            Self::SessionEnd,
            Self::Retention,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }
}

/// Why a snapshot is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SnapshotCause {
    /// A lifetime has ended.
    SessionEnd,
    /// The topic drops the records before long.
    Retention,
}

impl SnapshotCause {
    /// The kind of the segments that such a snapshot adds.
    pub fn segment_kind(self) -> SegmentKind {
        match self {
            Self::SessionEnd => SegmentKind::SessionEnd,
            Self::Retention => SegmentKind::Retention,
        }
    }
}

/// A segment that is in the object store and was verified there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedObject {
    /// The object's key: it names the content, so a second PUT of it changes nothing.
    pub key: String,
    /// Its first entry.
    pub min_entry_seq: u64,
    /// Its last entry.
    pub max_entry_seq: u64,
    /// Entries: a segment has no holes, so it is `max - min + 1`.
    pub entries: u64,
    /// Rows of the hot tail that it was made of.
    pub part_rows: u64,
    /// Plain bytes of the entries.
    pub plain_bytes: u64,
    /// Bytes of the object.
    pub object_bytes: u64,
    /// SHA-256 of the object as stored.
    pub object_digest: [u8; 32],
}

/// A row of the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRow {
    /// The session.
    pub session: SessionId,
    /// The object's key.
    pub key: String,
    /// Its first entry.
    pub min_entry_seq: u64,
    /// Its last entry.
    pub max_entry_seq: u64,
    /// Why it was archived.
    pub kind: SegmentKind,
    /// Entries.
    pub entries: u64,
    /// Plain bytes of the entries.
    pub plain_bytes: u64,
    /// Bytes of the object.
    pub object_bytes: u64,
    /// SHA-256 of the object as stored.
    pub object_digest: [u8; 32],
    /// When it was recorded, in milliseconds since 1970 by the database's clock.
    pub archived_at_ms: u64,
}

/// Names the staged row that a PUT was announced with, over the row's whole life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Staging(pub(crate) i64);

/// What became of staging an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Staged {
    /// The object may be put, and recorded with this.
    Ready(Staging),
    /// An object of this key is being deleted: nothing may be put until that is over.
    Condemned,
    /// The session is erased: nothing may be put.
    Erased,
}

/// An object that may exist and that is in no manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedObject {
    /// The object's key.
    pub key: String,
    /// The session.
    pub session: SessionId,
    /// How long ago it was staged last, by the database's clock.
    pub age: Duration,
    /// Whether it is being deleted.
    pub condemned: bool,
}

/// A flush: record the object and prune the rows that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flush {
    /// The session.
    pub session: SessionId,
    /// What [`Staged::Ready`] gave before the PUT.
    pub staging: Staging,
    /// The object, verified.
    pub object: ArchivedObject,
}

/// What became of a flush that has an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushed {
    /// It is recorded, and the rows are gone.
    Done {
        /// [`SegmentKind::Superseded`] or [`SegmentKind::SafetyValve`], by the checkpoint at that moment.
        kind: SegmentKind,
        /// Earlier safety-valve segments that turned out to be superseded.
        remarked: u64,
    },
    /// Nothing is pruned.
    Refused(Refusal),
}

/// What became of recording a segment that prunes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is recorded.
    Done,
    /// It is not.
    Refused(Refusal),
}

/// Why an object was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The session was erased meanwhile.
    Erased,
    /// Its staged row is gone, is another one, or is condemned: the object may be deleted. Stage and put again.
    NotStaged,
    /// The manifest has the key already. The staged row is gone with this answer: it would protect nothing.
    AlreadyRecorded,
    /// The hot tail does not hold the rows that the object was made of. Read them again.
    RowsMoved {
        /// Rows that the object was made of.
        expected: u64,
        /// Rows of its range that are there.
        found: u64,
    },
}

/// A session, the partition's progress and the unfinished entry, all of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotSource {
    /// The session.
    pub session: SessionId,
    /// The partition that it is pinned to.
    pub partition: i32,
    /// The incarnation of the topic.
    pub incarnation: u32,
    /// The state is the fold of every record of the partition below this offset.
    pub next_offset: u64,
    /// Differs from what the session's row has as soon as one more record is applied.
    pub row_version: String,
    /// The encoded state of the fold.
    pub state: Bytes,
    /// The account that opened it.
    pub owner: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The session that it is a sub-session of.
    pub parent: Option<SessionId>,
    /// Its path below the parent.
    pub subpath: String,
    /// Whether it, or a session above it, is erased.
    pub erased: bool,
    /// The last complete entry; 0 if none.
    pub last_entry_seq: u64,
    /// The last complete checkpoint; 0 if none.
    pub last_checkpoint_seq: u64,
    /// When it was opened, in microseconds since 1970 by the log's clock.
    pub opened_at_us: u64,
    /// When it was changed last, likewise.
    pub updated_at_us: u64,
    /// Every lifetime, by generation.
    pub lifetimes: Vec<LifetimeRow>,
    /// Accounts other than the owner that may see it, with their roles as on the wire, by account.
    pub access: Vec<(String, i32)>,
    /// The entry that is not complete; its parts are read with [`crate::Store::parts_page`].
    pub unfinished: Option<UnfinishedEntry>,
}

/// Parts of an entry whose last part was not applied yet.
///
/// Parts of one entry and one generation never change and are only added to; a later bind discards them. So what was
/// read later is what the source saw if and only if parts `0..parts` are all there with this generation. If not, take
/// a new source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedEntry {
    /// The entry it would become.
    pub entry_seq: u64,
    /// The generation that writes it.
    pub generation: u64,
    /// Parts that are there, from 0 without a hole.
    pub parts: u32,
    /// Their plain bytes.
    pub plain_bytes: u64,
}

/// A state of a session in the object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRow {
    /// The session.
    pub session: SessionId,
    /// The incarnation of the topic that the offset belongs to.
    pub incarnation: u32,
    /// The state holds every record of the session below this offset.
    pub next_offset: u64,
    /// The last entry that was complete then.
    pub last_entry_seq: u64,
    /// [`SnapshotSource::row_version`].
    pub row_version: String,
}

/// Which sessions need a new state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueBy {
    /// Those whose lifetime has ended.
    SessionEnd,
    /// Those whose newest state (or, without one, the session) is older than this.
    Age(Duration),
}

/// A page of a sweep over sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DuePage {
    /// The sessions of the page that are due; there may be none although there are further pages.
    pub due: Vec<SessionId>,
    /// Where the next page goes on; `None`: this was the last one.
    pub next_after: Option<SessionId>,
}

/// An erased session whose objects are to be deleted, once more or for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueErasure {
    /// The session.
    pub session: SessionId,
    /// The partition that it is pinned to.
    pub partition: i32,
    /// How often it was swept.
    pub sweeps: u32,
}

/// How far a partition is covered, and how far it was folded at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoverageNow {
    /// The coverage.
    pub coverage: Coverage,
    /// The first offset that is not folded yet.
    pub next_offset: u64,
    /// CRC-32 of the record before it; `None`: nothing was folded, or it is not known.
    pub last_record_crc: Option<u32>,
}

/// From where on a partition's records are still needed to build the hot tail again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    /// The incarnation of the topic.
    pub incarnation: u32,
    /// Every session with records below this offset has a state at or after them, or is swept.
    pub covered_offset: u64,
}
