//! Archived entries as one object.
//!
//! An object is a row of zstd frames and, behind them, one *skippable* frame. The content of the frames is the
//! verbatim bytes of the entries in entry_seq order, with nothing between them (byte-exact), so any zstd tool reads
//! the transcript; such tools pass over the skippable frame, which holds the index: what lies where.
//!
//! | part of the object | bytes |
//! |---|---|
//! | frame 0, 1, 2 … | zstd, content of at most [`FRAME_BYTES`], with a content checksum |
//! | header of the skippable frame | magic number, size of what follows, 4 bytes each |
//! | index | protobuf `wakelog.v1.SegmentIndex` |
//! | footer | length of the index, CRC-32 of the index, 4 bytes each; magic number, 8 bytes |
//!
//! Numbers are little-endian. The footer has a fixed size and comes last: the index is found from the object's end.
//! A frame ends at [`FRAME_BYTES`], within an entry, or where an entry starts and the frame has at least half of that.
//! The same entries give the same bytes, however they are handed in.
//!
//! | module | decision |
//! |---|---|
//! | `writer` | entries in, a sealed object out, in bounded memory |
//! | `index` | what lies where, checked before it is believed |
//! | `envelope` | how the index is wrapped, and found from the object's end |
//! | `reader` | the parts of some entries, from the frames that hold them |
//! | `verifier` | the whole object against its name and its index |

mod envelope;
mod index;
mod reader;
mod verifier;
mod writer;

pub use envelope::{IndexRead, first_index_range, read_index};
pub use index::{IndexEntry, IndexFrame, SegmentIndex};
pub use reader::{ReaderStep, SegmentPart, SegmentReader};
pub use verifier::{SegmentVerifier, VerifiedSegment, verify_spool};
pub use writer::{EntryHead, SealedSegment, SegmentWriter};

use wakelog_model::limits::MAX_ENTRY_BYTES;

use crate::Error;
use crate::names::SegmentKey;

/// The version of the format that this build writes, and the only one it reads.
pub const FORMAT_VERSION: u32 = 1;

/// Plain bytes at which a segment is full. The last entry may go beyond.
pub const FULL_BYTES: u64 = 32 * 1024 * 1024;

/// Entries at which a segment is full.
pub const FULL_ENTRIES: usize = 10_000;

/// Plain bytes of a frame, at most.
pub const FRAME_BYTES: usize = 1024 * 1024;

/// Plain bytes from which a frame ends where the next entry starts.
const FRAME_ENDS_AT_ENTRY_BYTES: usize = FRAME_BYTES / 2;

/// Plain bytes of a segment, at most: an entry as large as any can follow where the segment is just not full.
const MAX_PLAIN_BYTES: u64 = FULL_BYTES - 1 + MAX_ENTRY_BYTES;

/// Frames of a segment, at most: every one but the last has at least [`FRAME_ENDS_AT_ENTRY_BYTES`].
const MAX_FRAMES: usize = (MAX_PLAIN_BYTES / FRAME_ENDS_AT_ENTRY_BYTES as u64) as usize + 1;

/// Bytes of a frame within the object, at most: zstd's own bound for what can't be compressed stays below that.
const MAX_FRAME_OBJECT_BYTES: u64 = FRAME_BYTES as u64 + 64 * 1024;

/// Bytes of an index, at most. The largest that the limits allow has a little over half of that.
const MAX_INDEX_BYTES: usize = 1024 * 1024;

fn damaged(key: &SegmentKey, entry_seq: Option<u64>, reason: impl Into<String>) -> Error {
    Error::SegmentDamaged {
        key: key.to_string(),
        entry_seq,
        reason: reason.into(),
    }
}
