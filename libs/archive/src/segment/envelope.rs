//! How the index is wrapped, and found from the object's end.

use std::ops::Range;

use super::index::SegmentIndex;
use super::{MAX_INDEX_BYTES, damaged};
use crate::Error;
use crate::names::SegmentKey;

/// The first of the sixteen magic numbers that zstd reserves for skippable frames.
const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;
const HEADER_BYTES: usize = 8;

const FOOTER_MAGIC: [u8; 8] = *b"wlksegix";
const FOOTER_BYTES: usize = 16;

/// What surrounds an index.
const AROUND_BYTES: usize = HEADER_BYTES + FOOTER_BYTES;

/// What is fetched of an object's end at first. Holds the index of about 3,000 entries.
const FIRST_FETCH_BYTES: u64 = 64 * 1024;

/// What came of reading an index.
#[derive(Debug)]
pub enum IndexRead {
    /// The index.
    Index(SegmentIndex),
    /// The index is larger than what was given: these bytes of the object are needed, up to its end.
    Wanted(Range<u64>),
}

/// The bytes of an object of this size that are worth fetching first in order to read its index.
pub fn first_index_range(object_bytes: u64) -> Range<u64> {
    object_bytes.saturating_sub(FIRST_FETCH_BYTES)..object_bytes
}

/// Reads the index from the last bytes of the object, and checks it against the object's name and size.
/// [`Error::UnknownFormat`], [`Error::SegmentDamaged`].
pub fn read_index(key: &SegmentKey, object_bytes: u64, end: &[u8]) -> Result<IndexRead, Error> {
    if end.len() as u64 > object_bytes || end.len() < FOOTER_BYTES {
        return Err(damaged(
            key,
            None,
            format!("its end has {} of {object_bytes} bytes", end.len()),
        ));
    }
    let (before_footer, footer) = end.split_at(end.len() - FOOTER_BYTES);
    if footer[8..] != FOOTER_MAGIC {
        return Err(damaged(key, None, "it does not end like a segment"));
    }
    let index_bytes = u32_at(footer, 0) as usize;
    let envelope_bytes = (index_bytes.saturating_add(AROUND_BYTES)) as u64;
    if index_bytes > MAX_INDEX_BYTES || envelope_bytes > object_bytes {
        return Err(damaged(
            key,
            None,
            format!("its index claims {index_bytes} bytes of {object_bytes}"),
        ));
    }
    let frames_end = object_bytes - envelope_bytes;
    let Some(envelope_start) = before_footer.len().checked_sub(index_bytes + HEADER_BYTES) else {
        return Ok(IndexRead::Wanted(frames_end..object_bytes));
    };
    let (header, index) = before_footer[envelope_start..].split_at(HEADER_BYTES);
    if header != skippable_header(index_bytes) {
        return Err(damaged(key, None, "its index is not in a skippable frame"));
    }
    if crc32fast::hash(index) != u32_at(footer, 4) {
        return Err(damaged(key, None, "the checksum of its index is wrong"));
    }
    SegmentIndex::decode(key, index, frames_end).map(IndexRead::Index)
}

/// The skippable frame around an encoded index.
pub(super) fn wrap_index(index: &[u8]) -> Result<Vec<u8>, Error> {
    if index.len() > MAX_INDEX_BYTES {
        return Err(Error::Bug(format!("an index of {} bytes", index.len())));
    }
    let mut envelope = Vec::with_capacity(index.len() + AROUND_BYTES);
    envelope.extend_from_slice(&skippable_header(index.len()));
    envelope.extend_from_slice(index);
    envelope.extend_from_slice(&(index.len() as u32).to_le_bytes());
    envelope.extend_from_slice(&crc32fast::hash(index).to_le_bytes());
    envelope.extend_from_slice(&FOOTER_MAGIC);
    Ok(envelope)
}

fn skippable_header(index_bytes: usize) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&SKIPPABLE_MAGIC.to_le_bytes());
    // At most MAX_INDEX_BYTES and the footer.
    header[4..].copy_from_slice(&((index_bytes + FOOTER_BYTES) as u32).to_le_bytes());
    header
}

/// The four bytes must be there.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}
