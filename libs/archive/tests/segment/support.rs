//! Entries, and a reader's loop over an object at hand.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;
use wakelog_archive::{
    EntryHead, Error, IndexRead, ReaderStep, SealedSegment, SegmentIndex, SegmentKey, SegmentPart,
    SegmentReader, SegmentWriter, SpoolOptions, first_index_range, read_index,
};
use wakelog_model::limits::PART_SIZE;
use wakelog_model::{LifetimeId, SessionId};

pub(crate) fn session() -> SessionId {
    SessionId(Uuid::from_u128(0xfeed))
}

pub(crate) fn head(entry_seq: u64) -> EntryHead {
    EntryHead {
        entry_seq,
        checkpoint: entry_seq.is_multiple_of(7),
        generation: 1 + entry_seq / 5,
        lifetime_id: LifetimeId([(entry_seq / 5) as u8; 16]),
    }
}

pub(crate) fn seal(first: u64, entries: &[Vec<u8>]) -> SealedSegment {
    seal_in(SpoolOptions::default(), first, entries)
}

pub(crate) fn seal_in(options: SpoolOptions, first: u64, entries: &[Vec<u8>]) -> SealedSegment {
    let mut writer = SegmentWriter::new(session(), options).unwrap();
    for (entry, entry_seq) in entries.iter().zip(first..) {
        writer.begin_entry(head(entry_seq)).unwrap();
        for part in entry.chunks(PART_SIZE) {
            writer.append_part(part).unwrap();
        }
    }
    writer.finish().unwrap()
}

pub(crate) fn object(segment: &SealedSegment) -> Vec<u8> {
    segment.spool.read(0..segment.object_bytes).unwrap().to_vec()
}

/// Bytes that zstd can't make smaller, the same for the same seed.
pub(crate) fn noise(length: usize, mut seed: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        bytes.extend_from_slice(&seed.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn slice(object: &[u8], range: Range<u64>) -> &[u8] {
    &object[range.start as usize..range.end as usize]
}

pub(crate) fn index(key: &SegmentKey, object: &[u8]) -> Result<SegmentIndex, Error> {
    let object_bytes = object.len() as u64;
    let first = slice(object, first_index_range(object_bytes));
    match read_index(key, object_bytes, first)? {
        IndexRead::Index(index) => Ok(index),
        IndexRead::Wanted(range) => match read_index(key, object_bytes, slice(object, range))? {
            IndexRead::Index(index) => Ok(index),
            IndexRead::Wanted(range) => panic!("{range:?} is wanted once more"),
        },
    }
}

/// The parts that come before an error, and the error.
pub(crate) fn read(
    key: &SegmentKey,
    object: &[u8],
    first: u64,
    last: u64,
) -> (Vec<SegmentPart>, Result<(), Error>) {
    let mut parts = Vec::new();
    let result = read_into(&mut parts, key, object, first, last);
    (parts, result)
}

fn read_into(
    parts: &mut Vec<SegmentPart>,
    key: &SegmentKey,
    object: &[u8],
    first: u64,
    last: u64,
) -> Result<(), Error> {
    let index = Arc::new(index(key, object)?);
    let mut reader = SegmentReader::new(*key, index, first, last)?;
    loop {
        match reader.step()? {
            ReaderStep::Part(part) => parts.push(part),
            ReaderStep::Wanted(range) => {
                assert!(!range.is_empty());
                reader.supply(Bytes::copy_from_slice(slice(object, range)))?;
            }
            ReaderStep::Done => return Ok(()),
        }
    }
}

/// The entries that parts make up, whole ones only.
pub(crate) fn entries(parts: &[SegmentPart]) -> Vec<(u64, Vec<u8>)> {
    let mut entries = Vec::new();
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&part.bytes);
        if part.last {
            entries.push((part.entry_seq, std::mem::take(&mut bytes)));
        }
    }
    entries
}
