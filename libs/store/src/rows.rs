//! What goes into the store and comes out of it.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use wakelog_model::{Digest16, LifetimeId, SessionId, WriterNonce};

/// Everything that one batch changes. The rows are what is left once the whole batch is folded: at most one
/// [`SessionWrite`] a session, one [`LifetimeWrite`] a lifetime, and no part of an entry that a later record of the
/// same batch discarded.
#[derive(Debug, Clone, Default)]
pub struct BatchWrites {
    /// Sessions that were opened or changed.
    pub sessions: Vec<SessionWrite>,
    /// Lifetimes that were bound or changed.
    pub lifetimes: Vec<LifetimeWrite>,
    /// Changes of access, in the log's order: the last one of an account counts.
    pub access: Vec<AccessWrite>,
    /// Unfinished entries of superseded lifetimes. They are deleted before `parts` is inserted.
    pub discarded_entries: Vec<(SessionId, u64)>,
    /// Parts that were applied.
    pub parts: Vec<PartRow>,
    /// Records that the fold refused.
    pub quarantined: Vec<QuarantinedRecord>,
    /// Sessions that were erased. Reaches every session that descends from them, and what this batch inserted.
    pub erased: Vec<SessionId>,
}

impl BatchWrites {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        let Self {
            sessions,
            lifetimes,
            access,
            discarded_entries,
            parts,
            quarantined,
            erased,
        } = self;
        sessions.is_empty()
            && lifetimes.is_empty()
            && access.is_empty()
            && discarded_entries.is_empty()
            && parts.is_empty()
            && quarantined.is_empty()
            && erased.is_empty()
    }
}

/// A session as the fold says it is. Partition, owner, labels, parent and subpath are written when it is first stored
/// and never again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionWrite {
    /// The session.
    pub session: SessionId,
    /// The partition that it is pinned to.
    pub partition: i32,
    /// The account that opened it.
    pub owner: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The session that it is a sub-session of.
    pub parent: Option<SessionId>,
    /// Its path below the parent.
    pub subpath: String,
    /// The encoded state of the fold.
    pub state: Vec<u8>,
    /// The last complete entry; 0 if none.
    pub last_entry_seq: u64,
    /// The last complete checkpoint; 0 if none.
    pub last_checkpoint_seq: u64,
    /// The current generation; 0 before the first lifetime.
    pub generation: u64,
    /// The current lifetime's status, as on the wire.
    pub lifetime_status: i32,
    /// Whether it is erased. Never taken back.
    pub erased: bool,
    /// When it was opened, in microseconds since 1970; written when it is first stored. `None`, and what lies ahead: now.
    pub opened_at_us: Option<u64>,
    /// When it was changed last, in microseconds since 1970. `None`, and what lies ahead: now.
    pub updated_at_us: Option<u64>,
}

/// A lifetime as the fold says it is. Id, request, base and body start are written once, by the bind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifetimeWrite {
    /// The session.
    pub session: SessionId,
    /// The lifetime's generation.
    pub generation: u64,
    /// Its id.
    pub lifetime_id: LifetimeId,
    /// The request that bound it.
    pub request_id: String,
    /// The last complete entry when it was bound.
    pub base: u64,
    /// The first entry of its resume body.
    pub body_start: u64,
    /// Its writer, from the first applied entry on.
    pub nonce: Option<WriterNonce>,
    /// The last complete entry, counted over the lifetime.
    pub applied_seq: u64,
    /// Its status, as on the wire.
    pub status: i32,
    /// When it was bound, in milliseconds since 1970; written by the bind. `None`, and what lies ahead: now.
    pub bound_at_ms: Option<u64>,
}

/// One account's access to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessWrite {
    /// The session.
    pub session: SessionId,
    /// The account.
    pub account: String,
    /// The role, as on the wire; 0 takes the access back.
    pub role: i32,
}

/// A part of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRow {
    /// The session.
    pub session: SessionId,
    /// The entry.
    pub entry_seq: u64,
    /// The part within the entry, from 0.
    pub part: u32,
    /// Whether it completes the entry.
    pub last: bool,
    /// Whether the entry is a checkpoint.
    pub checkpoint: bool,
    /// The generation of the lifetime that wrote it.
    pub generation: u64,
    /// How the body is encoded, as on the wire.
    pub encoding: i32,
    /// Length of the plain bytes.
    pub plain_length: u32,
    /// Digest of the plain bytes.
    pub part_digest: Digest16,
    /// The bytes as stored.
    pub body: Bytes,
}

/// A record that the fold refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedRecord {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The record's offset.
    pub offset: i64,
    /// The record's key; empty if it had none.
    pub record_key: Vec<u8>,
    /// The stable name of the reason.
    pub reason: &'static str,
    /// The reason in words; cut to a bounded length.
    pub detail: String,
    /// The record's value.
    pub raw: Bytes,
}

/// A lifetime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifetimeRow {
    /// The session.
    pub session: SessionId,
    /// The lifetime's generation.
    pub generation: u64,
    /// Its id.
    pub lifetime_id: LifetimeId,
    /// The request that bound it.
    pub request_id: String,
    /// The last complete entry when it was bound.
    pub base: u64,
    /// The first entry of its resume body.
    pub body_start: u64,
    /// Its writer, from the first applied entry on.
    pub nonce: Option<WriterNonce>,
    /// The last complete entry, counted over the lifetime.
    pub applied_seq: u64,
    /// Its status, as on the wire.
    pub status: i32,
    /// When it was bound, in milliseconds since 1970 by the log's clock.
    pub bound_at_ms: u64,
    /// The current generation of the session.
    pub current_generation: u64,
}

/// What ingest needs to know of a lifetime to admit or refuse an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifetimeCursor {
    /// The lifetime.
    pub lifetime_id: LifetimeId,
    /// Its session.
    pub session: SessionId,
    /// Its generation.
    pub generation: u64,
    /// The current generation of the session.
    pub session_generation: u64,
    /// Whether the session or one that it descends from is erased.
    pub erased: bool,
    /// Its writer, from the first applied entry on.
    pub nonce: Option<WriterNonce>,
    /// The last complete entry, counted over the lifetime.
    pub applied_seq: u64,
    /// Its status, as on the wire.
    pub status: i32,
    /// How far the session's partition was folded at the moment that this is of; 0 if nobody has claimed it.
    pub next_offset: i64,
    /// The server's run that this is of: see [`Store::server_run`](crate::Store::server_run).
    pub server_run: i64,
    /// The highest generation that somebody announced a bind of; 0 if nobody did.
    pub binding_generation: u64,
    /// How long ago that was, by the database's clock; zero if nobody did.
    pub binding_raised_age: Duration,
}

/// What an account may do about erasing a session that it may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErasureStanding {
    /// The partition that the session is pinned to.
    pub partition: i32,
    /// Whether the account owns it.
    pub is_owner: bool,
    /// Whether it, or a session above it, is erased already.
    pub erased: bool,
}

/// A session that the caller may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub session: SessionId,
    /// The partition that it is pinned to.
    pub partition: i32,
    /// The account that opened it.
    pub owner: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The session that it is a sub-session of.
    pub parent: Option<SessionId>,
    /// Its path below the parent.
    pub subpath: String,
    /// The last complete entry; 0 if none.
    pub last_entry_seq: u64,
    /// The last complete checkpoint; 0 if none.
    pub last_checkpoint_seq: u64,
    /// The current generation; 0 before the first lifetime.
    pub generation: u64,
    /// The current lifetime's status, as on the wire.
    pub lifetime_status: i32,
    /// When it was first stored, in milliseconds since 1970 by the database's clock.
    pub opened_at_ms: u64,
    /// The same in microseconds: where a listing goes on.
    pub opened_at_us: u64,
    /// When it was last changed, in milliseconds since 1970 by the database's clock.
    pub updated_at_ms: u64,
}

/// Which of an account's sessions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Sessions, at most; more than 1,000 means 1,000.
    pub limit: u32,
    /// `opened_at_us` and id of the last session of the page before.
    pub after: Option<(u64, SessionId)>,
    /// Labels that a session must have, with these values.
    pub labels: BTreeMap<String, String>,
}
