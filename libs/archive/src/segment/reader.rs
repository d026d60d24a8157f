//! The parts of some entries, from the frames that hold them.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use wakelog_model::limits::PART_SIZE;
use wakelog_model::{Digest16, EntryDigester, LifetimeId, part_digest};
use zstd::bulk::Decompressor;

use super::damaged;
use super::index::{IndexEntry, SegmentIndex};
use crate::Error;
use crate::names::SegmentKey;

/// Bytes of the object that are asked for at a time: as many frames as fit, and at least one.
const FETCH_BYTES: u64 = 4 * 1024 * 1024;

/// A part of an entry. Parts are split where the log splits them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentPart {
    /// The entry, over the session.
    pub entry_seq: u64,
    /// Whether the entry is a checkpoint.
    pub checkpoint: bool,
    /// The part, from 0.
    pub part: u32,
    /// Whether it is the entry's last part. Then the entry's digest is checked.
    pub last: bool,
    /// The generation of the lifetime that wrote the entry.
    pub generation: u64,
    /// The lifetime that wrote the entry.
    pub lifetime_id: LifetimeId,
    /// The part digest.
    pub digest: Digest16,
    /// The plain bytes.
    pub bytes: Bytes,
}

/// What a reader has to say next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReaderStep {
    /// The next part.
    Part(SegmentPart),
    /// These bytes of the object are needed first: [`SegmentReader::supply`].
    Wanted(Range<u64>),
    /// There are no more parts.
    Done,
}

/// Reads entries of a segment, in order. It does no I/O: the caller fetches what it asks for. Holds what was supplied
/// and not read yet, a frame, and a part.
pub struct SegmentReader {
    key: SegmentKey,
    index: Arc<SegmentIndex>,
    decompressor: Decompressor<'static>,
    /// Positions of the entries that are still to be read.
    entries: Range<usize>,
    /// Positions of the frames that are still to be decoded.
    frames: Range<usize>,
    /// Bytes of these frames, from the start of the first one on.
    supplied: Bytes,
    /// Decoded bytes, from the start of the next part on; before the first part perhaps with what belongs to others.
    plain: BytesMut,
    /// How many bytes at the start of `plain` belong to others.
    skipped: usize,
    digester: EntryDigester,
    read_of_entry: u64,
}

impl SegmentReader {
    /// A reader of the entries `first` to `last`. [`Error::NotInSegment`] if the segment lacks one of them.
    pub fn new(key: SegmentKey, index: Arc<SegmentIndex>, first: u64, last: u64) -> Result<Self, Error> {
        let not_in_segment = || Error::NotInSegment {
            key: key.to_string(),
            first,
            last,
        };
        let first_entry = *index.entry(first).ok_or_else(not_in_segment)?;
        let last_entry = *index.entry(last).ok_or_else(not_in_segment)?;
        if first > last {
            return Err(not_in_segment());
        }
        // Positions fit: both entries are in the index.
        let first_position = (first - index.entries[0].entry_seq) as usize;
        let entries = first_position..first_position + (last - first) as usize + 1;
        let end = last_entry.plain_offset + last_entry.plain_length;
        let frames = &index.frames;
        let first_frame = frames
            .partition_point(|frame| frame.plain_offset + frame.plain_length <= first_entry.plain_offset);
        let end_frame = frames.partition_point(|frame| frame.plain_offset < end);
        let Some(frame) = frames.get(first_frame) else {
            return Err(damaged(&key, Some(first), "no frame holds it"));
        };
        // Less than a frame.
        let skipped = (first_entry.plain_offset - frame.plain_offset) as usize;
        Ok(Self {
            key,
            decompressor: Decompressor::new().map_err(Error::Spool)?,
            entries,
            frames: first_frame..end_frame,
            supplied: Bytes::new(),
            plain: BytesMut::new(),
            skipped,
            digester: EntryDigester::default(),
            read_of_entry: 0,
            index,
        })
    }

    /// The next part, or what is needed for it. [`Error::SegmentDamaged`] instead of any other bytes than were
    /// archived; an entry's last part is not handed out before the entry's digest and length are known to be right.
    pub fn step(&mut self) -> Result<ReaderStep, Error> {
        let Some(entry) = self.index.entries[self.entries.clone()].first().copied() else {
            return Ok(ReaderStep::Done);
        };
        let left = entry.plain_length - self.read_of_entry;
        let part_bytes = left.min(PART_SIZE as u64) as usize;
        while self.plain.len() < self.skipped + part_bytes {
            if self.supplied.is_empty() {
                return self.wanted(&entry);
            }
            self.decode_frame(&entry)?;
        }
        if self.skipped > 0 {
            drop(self.plain.split_to(self.skipped));
            self.skipped = 0;
        }
        let bytes = self.plain.split_to(part_bytes).freeze();
        self.part(&entry, bytes).map(ReaderStep::Part)
    }

    /// Takes the bytes that [`SegmentReader::step`] asked for, all of them.
    pub fn supply(&mut self, bytes: Bytes) -> Result<(), Error> {
        let wanted = self.next_fetch();
        let wanted_bytes = wanted.end - wanted.start;
        if !self.supplied.is_empty() || bytes.len() as u64 != wanted_bytes || bytes.is_empty() {
            return Err(Error::Bug(format!(
                "segment {}: {} bytes were supplied where {wanted_bytes} are wanted",
                self.key,
                bytes.len()
            )));
        }
        self.supplied = bytes;
        Ok(())
    }

    fn wanted(&self, entry: &IndexEntry) -> Result<ReaderStep, Error> {
        let wanted = self.next_fetch();
        if wanted.is_empty() {
            return Err(damaged(
                &self.key,
                Some(entry.entry_seq),
                "its frames end before the entry does",
            ));
        }
        Ok(ReaderStep::Wanted(wanted))
    }

    fn next_fetch(&self) -> Range<u64> {
        let frames = &self.index.frames[self.frames.clone()];
        let Some(first) = frames.first() else {
            return 0..0;
        };
        let start = first.object_offset;
        let mut end = start + first.object_length;
        for frame in &frames[1..] {
            let frame_end = frame.object_offset + frame.object_length;
            if frame_end - start > FETCH_BYTES {
                break;
            }
            end = frame_end;
        }
        start..end
    }

    /// `supplied` holds whole frames, the next one first.
    fn decode_frame(&mut self, entry: &IndexEntry) -> Result<(), Error> {
        let frame = self.index.frames[self.frames.start];
        let position = self.frames.start;
        let compressed = self.supplied.split_to(frame.object_length as usize);
        // A capacity of at most FRAME_BYTES, by the index's check.
        let plain = self
            .decompressor
            .decompress(&compressed, frame.plain_length as usize)
            .map_err(|error| {
                damaged(
                    &self.key,
                    Some(entry.entry_seq),
                    format!("frame {position} does not decode: {error}"),
                )
            })?;
        if plain.len() as u64 != frame.plain_length {
            return Err(damaged(
                &self.key,
                Some(entry.entry_seq),
                format!(
                    "frame {position} decodes to {} bytes instead of {}",
                    plain.len(),
                    frame.plain_length
                ),
            ));
        }
        self.plain.extend_from_slice(&plain);
        self.frames.start += 1;
        Ok(())
    }

    fn part(&mut self, entry: &IndexEntry, bytes: Bytes) -> Result<SegmentPart, Error> {
        let part = self.digester.part_count();
        let digest = part_digest(&bytes);
        self.digester.push(digest);
        self.read_of_entry += bytes.len() as u64;
        let last = self.read_of_entry == entry.plain_length;
        if last {
            if self.digester.finish() != Some(entry.digest) {
                return Err(damaged(
                    &self.key,
                    Some(entry.entry_seq),
                    "its bytes have another digest than the entry",
                ));
            }
            self.entries.start += 1;
            self.read_of_entry = 0;
            self.digester = EntryDigester::default();
        }
        Ok(SegmentPart {
            entry_seq: entry.entry_seq,
            checkpoint: entry.checkpoint,
            part,
            last,
            generation: entry.generation,
            lifetime_id: entry.lifetime_id,
            digest,
            bytes,
        })
    }
}

impl std::fmt::Debug for SegmentReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SegmentReader")
            .field("key", &self.key)
            .field("entries", &self.entries)
            .field("frames", &self.frames)
            .finish_non_exhaustive()
    }
}
