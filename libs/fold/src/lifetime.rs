//! What is remembered of the session's current lifetime.

use std::collections::VecDeque;

use wakelog_model::limits::REMEMBERED_ENTRIES;
use wakelog_model::{Digest16, LifetimeId, WriterNonce};
use wakelog_proto::v1::LifetimeStatus;

/// The session's current lifetime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifetime {
    pub(crate) id: LifetimeId,
    pub(crate) generation: u64,
    pub(crate) request_id: String,
    pub(crate) base: u64,
    pub(crate) body_start: u64,
    pub(crate) nonce: Option<WriterNonce>,
    pub(crate) status: LifetimeStatus,
    pub(crate) last_seq: u64,
    /// Hashes of the last complete entries, oldest first; the last one is `last_seq`'s.
    pub(crate) remembered: VecDeque<Digest16>,
    pub(crate) open_entry: Option<OpenEntry>,
}

/// An entry that has parts but is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenEntry {
    pub(crate) checkpoint: bool,
    /// The digests of the applied parts, in order; at least one.
    pub(crate) part_digests: Vec<Digest16>,
}

/// What a lifetime remembers of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remembered {
    /// The entry is complete; the hash is [`wakelog_model::remembered_hash`] of it.
    Hash(Digest16),
    /// The entry is complete, and older than the remembered window. (So is 0, which names no entry.)
    TooOld,
    /// The entry is not complete.
    NotYet,
}

impl Lifetime {
    /// The lifetime's id.
    pub fn id(&self) -> LifetimeId {
        self.id
    }

    /// Its generation: 1, 2, 3 ... over the session.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The request that bound it.
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The session's last complete entry at the bind; 0: none.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Where the resume body of this bind starts. The body is `[body_start ..= base]`.
    pub fn body_start(&self) -> u64 {
        self.body_start
    }

    /// The writer whose part was applied first.
    pub fn nonce(&self) -> Option<WriterNonce> {
        self.nonce
    }

    /// Whether the lifetime takes entries.
    pub fn status(&self) -> LifetimeStatus {
        self.status
    }

    /// The last complete entry of the lifetime; 0: none.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The applied parts of the entry after `last_seq`.
    pub fn open_parts(&self) -> u32 {
        self.open_entry
            .as_ref()
            .map_or(0, |open| open.part_digests.len() as u32)
    }

    /// The digests of those parts, in order.
    pub fn open_part_digests(&self) -> &[Digest16] {
        self.open_entry.as_ref().map_or(&[], |open| &open.part_digests)
    }

    /// What is remembered of entry `lifetime_seq`.
    pub fn remembered(&self, lifetime_seq: u64) -> Remembered {
        let Some(age) = self.last_seq.checked_sub(lifetime_seq) else {
            return Remembered::NotYet;
        };
        usize::try_from(age)
            .ok()
            .and_then(|age| self.remembered.iter().rev().nth(age))
            .map_or(Remembered::TooOld, |hash| Remembered::Hash(*hash))
    }

    /// Makes the entry after `last_seq` complete.
    pub(crate) fn complete_entry(&mut self, hash: Digest16) {
        self.open_entry = None;
        self.last_seq += 1;
        self.remembered.push_back(hash);
        if self.remembered.len() > REMEMBERED_ENTRIES {
            self.remembered.pop_front();
        }
    }

    /// Takes a part of the entry after `last_seq` that does not complete it.
    pub(crate) fn keep_part(&mut self, checkpoint: bool, digest: Digest16) {
        self.open_entry
            .get_or_insert_with(|| OpenEntry {
                checkpoint,
                part_digests: Vec::new(),
            })
            .part_digests
            .push(digest);
    }
}
