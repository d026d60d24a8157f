//! Entries in, a sealed object out.

use sha2::{Digest as _, Sha256};
use wakelog_model::limits::{MAX_PARTS, PART_SIZE};
use wakelog_model::{EntryDigester, LifetimeId, SessionId, part_digest};
use zstd::bulk::Compressor;
use zstd::stream::raw::CParameter;

use super::envelope::wrap_index;
use super::index::{IndexEntry, IndexFrame, SegmentIndex};
use super::{FRAME_BYTES, FRAME_ENDS_AT_ENTRY_BYTES, FULL_BYTES, FULL_ENTRIES};
use crate::Error;
use crate::names::SegmentKey;
use crate::spool::{Spool, SpoolOptions, SpoolWriter};

/// Another level, or another version of zstd, gives other bytes for the same entries.
const LEVEL: i32 = 3;

/// What is known of an entry before its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryHead {
    /// The entry, over the session.
    pub entry_seq: u64,
    /// Whether it is a checkpoint.
    pub checkpoint: bool,
    /// The generation of the lifetime that wrote it.
    pub generation: u64,
    /// The lifetime that wrote it.
    pub lifetime_id: LifetimeId,
}

/// A segment that is complete, and its object.
#[derive(Debug, Clone)]
pub struct SealedSegment {
    /// The object's name.
    pub key: SegmentKey,
    /// The session.
    pub session: SessionId,
    /// The first entry_seq.
    pub min_entry_seq: u64,
    /// The last entry_seq.
    pub max_entry_seq: u64,
    /// How many entries.
    pub entries: u64,
    /// How many parts these entries have.
    pub parts: u64,
    /// Plain bytes of the entries.
    pub plain_bytes: u64,
    /// Bytes of the object.
    pub object_bytes: u64,
    /// SHA-256 of the object.
    pub object_digest: [u8; 32],
    /// The object.
    pub spool: Spool,
}

/// Writes a segment. Holds about two frames, the index, and what the spool keeps in memory, however large the segment
/// is. Compresses on the calling thread: a frame takes a few milliseconds.
///
/// An error of the spool or of zstd leaves it unusable.
pub struct SegmentWriter {
    session: SessionId,
    compressor: Compressor<'static>,
    spool: SpoolWriter,
    hasher: Sha256,
    frame: Vec<u8>,
    frames: Vec<IndexFrame>,
    entries: Vec<IndexEntry>,
    open: Option<OpenEntry>,
    plain_bytes: u64,
    parts: u64,
    failed: bool,
}

#[derive(Debug)]
struct OpenEntry {
    head: EntryHead,
    plain_offset: u64,
    digester: EntryDigester,
    ended: bool,
}

impl SegmentWriter {
    /// An empty segment of the session.
    pub fn new(session: SessionId, options: SpoolOptions) -> Result<Self, Error> {
        let mut compressor = Compressor::new(LEVEL).map_err(Error::Spool)?;
        compressor
            .set_parameter(CParameter::ChecksumFlag(true))
            .map_err(Error::Spool)?;
        Ok(Self {
            session,
            compressor,
            spool: SpoolWriter::new(options),
            hasher: Sha256::new(),
            frame: Vec::new(),
            frames: Vec::new(),
            entries: Vec::new(),
            open: None,
            plain_bytes: 0,
            parts: 0,
            failed: false,
        })
    }

    /// Entries so far, with the one that is being written.
    pub fn entries(&self) -> usize {
        self.entries.len() + usize::from(self.open.is_some())
    }

    /// Plain bytes so far.
    pub fn plain_bytes(&self) -> u64 {
        self.plain_bytes
    }

    /// Whether the segment takes no further entry: at [`FULL_BYTES`] plain bytes or [`FULL_ENTRIES`] entries. The entry
    /// that is being written may still go on.
    pub fn is_full(&self) -> bool {
        self.plain_bytes >= FULL_BYTES || self.entries() >= FULL_ENTRIES
    }

    /// Begins the next entry; the one before it is complete. [`Error::OutOfOrder`] unless it follows that one,
    /// [`Error::SegmentFull`], [`Error::EntryMalformed`].
    pub fn begin_entry(&mut self, head: EntryHead) -> Result<(), Error> {
        let expected = self.next_entry_seq().unwrap_or(head.entry_seq.max(1));
        // The largest number has no next one.
        if head.entry_seq != expected || head.entry_seq == u64::MAX {
            return Err(Error::OutOfOrder {
                expected,
                found: head.entry_seq,
            });
        }
        if self.is_full() {
            return Err(Error::SegmentFull {
                entry_seq: head.entry_seq,
            });
        }
        self.end_entry()?;
        if self.frame.len() >= FRAME_ENDS_AT_ENTRY_BYTES {
            self.end_frame()?;
        }
        self.open = Some(OpenEntry {
            head,
            plain_offset: self.plain_bytes,
            digester: EntryDigester::default(),
            ended: false,
        });
        Ok(())
    }

    /// Appends the next part of the entry: exactly [`PART_SIZE`] plain bytes, and in the last part one to that many.
    pub fn append_part(&mut self, plain: &[u8]) -> Result<(), Error> {
        let Some(open) = &mut self.open else {
            return Err(Error::Bug("a part before any entry".to_owned()));
        };
        let reason = if plain.is_empty() || plain.len() > PART_SIZE {
            Some("a part has no bytes or too many")
        } else if open.ended {
            Some("a part follows the last one")
        } else if open.digester.part_count() >= MAX_PARTS {
            Some("it is larger than any entry may be")
        } else {
            None
        };
        if let Some(reason) = reason {
            return Err(Error::EntryMalformed {
                entry_seq: open.head.entry_seq,
                reason,
            });
        }
        open.ended = plain.len() < PART_SIZE;
        open.digester.push(part_digest(plain));
        self.plain_bytes += plain.len() as u64;
        self.parts += 1;
        self.fill_frames(plain)
    }

    /// Seals the segment. [`Error::SegmentEmpty`], [`Error::EntryMalformed`].
    pub fn finish(mut self) -> Result<SealedSegment, Error> {
        self.end_entry()?;
        if !self.frame.is_empty() {
            self.end_frame()?;
        }
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else {
            return Err(Error::SegmentEmpty);
        };
        let (min_entry_seq, max_entry_seq) = (first.entry_seq, last.entry_seq);
        let index = SegmentIndex {
            session: self.session,
            entries: std::mem::take(&mut self.entries),
            frames: std::mem::take(&mut self.frames),
        };
        self.write(&wrap_index(&index.encode())?)?;
        let spool = self.spool.finish();
        let object_digest: [u8; 32] = self.hasher.finalize().into();
        Ok(SealedSegment {
            key: SegmentKey::new(self.session, min_entry_seq, max_entry_seq, &object_digest),
            session: self.session,
            min_entry_seq,
            max_entry_seq,
            entries: index.entries.len() as u64,
            parts: self.parts,
            plain_bytes: self.plain_bytes,
            object_bytes: spool.length(),
            object_digest,
            spool,
        })
    }

    /// `None`: any may come first.
    fn next_entry_seq(&self) -> Option<u64> {
        let open = self.open.as_ref().map(|open| open.head.entry_seq);
        let last = open.or_else(|| self.entries.last().map(|last| last.entry_seq));
        last.map(|last| last.saturating_add(1))
    }

    fn end_entry(&mut self) -> Result<(), Error> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let head = open.head;
        let Some(digest) = open.digester.finish() else {
            return Err(Error::EntryMalformed {
                entry_seq: head.entry_seq,
                reason: "it has no bytes",
            });
        };
        self.entries.push(IndexEntry {
            entry_seq: head.entry_seq,
            checkpoint: head.checkpoint,
            plain_offset: open.plain_offset,
            plain_length: self.plain_bytes - open.plain_offset,
            digest,
            generation: head.generation,
            lifetime_id: head.lifetime_id,
        });
        self.open = None;
        Ok(())
    }

    fn fill_frames(&mut self, mut plain: &[u8]) -> Result<(), Error> {
        while !plain.is_empty() {
            let room = FRAME_BYTES - self.frame.len();
            let (now, later) = plain.split_at(plain.len().min(room));
            self.frame.extend_from_slice(now);
            plain = later;
            if self.frame.len() == FRAME_BYTES {
                self.end_frame()?;
            }
        }
        Ok(())
    }

    fn end_frame(&mut self) -> Result<(), Error> {
        let compressed = match self.compressor.compress(&self.frame) {
            Ok(compressed) => compressed,
            Err(error) => {
                self.failed = true;
                return Err(Error::Spool(error));
            }
        };
        let plain_length = self.frame.len() as u64;
        let object_offset = self.spool.length();
        self.write(&compressed)?;
        let framed = self.frames.last();
        self.frames.push(IndexFrame {
            object_offset,
            object_length: compressed.len() as u64,
            plain_offset: framed.map_or(0, |last| last.plain_offset + last.plain_length),
            plain_length,
        });
        self.frame.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.failed {
            return Err(Error::Bug(
                "a segment is written on after its spool failed".to_owned(),
            ));
        }
        if let Err(error) = self.spool.append(bytes) {
            self.failed = true;
            return Err(error);
        }
        self.hasher.update(bytes);
        Ok(())
    }
}

impl std::fmt::Debug for SegmentWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SegmentWriter")
            .field("session", &self.session)
            .field("entries", &self.entries())
            .field("plain_bytes", &self.plain_bytes)
            .finish_non_exhaustive()
    }
}
