//! What lies where in a segment.

use prost::Message as _;
use wakelog_model::{Digest16, LifetimeId, SessionId};
use wakelog_proto::v1;

use super::FORMAT_VERSION;

mod decode;

/// An entry of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry {
    /// The entry, over the session.
    pub entry_seq: u64,
    /// Whether it is a checkpoint.
    pub checkpoint: bool,
    /// Where its bytes start within the segment's plain bytes.
    pub plain_offset: u64,
    /// How many bytes it has; at least one.
    pub plain_length: u64,
    /// Its entry digest.
    pub digest: Digest16,
    /// The generation of the lifetime that wrote it.
    pub generation: u64,
    /// The lifetime that wrote it.
    pub lifetime_id: LifetimeId,
}

/// A frame of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexFrame {
    /// Where it starts within the object.
    pub object_offset: u64,
    /// How many bytes of the object it has.
    pub object_length: u64,
    /// Where its content starts within the segment's plain bytes.
    pub plain_offset: u64,
    /// How many bytes its content has; at least one.
    pub plain_length: u64,
}

/// The index of a segment. One that was read is checked: entries follow one another without a hole, entries and frames
/// cover the same plain bytes, and the frames are all of the object up to the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentIndex {
    pub(super) session: SessionId,
    /// Never empty.
    pub(super) entries: Vec<IndexEntry>,
    /// Never empty.
    pub(super) frames: Vec<IndexFrame>,
}

impl SegmentIndex {
    /// The session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The entries, ascending and without a hole.
    pub fn entries(&self) -> &[IndexEntry] {
        &self.entries
    }

    /// The frames, in the order of the object.
    pub fn frames(&self) -> &[IndexFrame] {
        &self.frames
    }

    /// The entry, if the segment holds it.
    pub fn entry(&self, entry_seq: u64) -> Option<&IndexEntry> {
        let first = self.entries.first()?.entry_seq;
        let position = usize::try_from(entry_seq.checked_sub(first)?).ok()?;
        self.entries.get(position)
    }

    /// Plain bytes of all entries.
    pub fn plain_bytes(&self) -> u64 {
        self.entries
            .last()
            .map_or(0, |last| last.plain_offset + last.plain_length)
    }

    /// Bytes of the object up to the index.
    pub fn frames_bytes(&self) -> u64 {
        self.frames
            .last()
            .map_or(0, |last| last.object_offset + last.object_length)
    }

    /// The same index has the same bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let first = self.entries.first().map_or(0, |first| first.entry_seq);
        let positions = self.entries.iter().zip(0_u32..);
        let message = v1::SegmentIndex {
            format_version: FORMAT_VERSION,
            session_id: self.session.0.as_bytes().to_vec().into(),
            first_entry_seq: first,
            entry_plain_lengths: self.entries.iter().map(|entry| entry.plain_length).collect(),
            entry_digests: self
                .entries
                .iter()
                .flat_map(|entry| entry.digest.0)
                .collect::<Vec<u8>>()
                .into(),
            checkpoint_positions: positions
                .filter(|(entry, _)| entry.checkpoint)
                .map(|(_, position)| position)
                .collect(),
            lifetimes: self.lifetime_runs(),
            frame_plain_lengths: self.frames.iter().map(|frame| frame.plain_length).collect(),
            frame_object_lengths: self.frames.iter().map(|frame| frame.object_length).collect(),
        };
        message.encode_to_vec()
    }

    fn lifetime_runs(&self) -> Vec<v1::SegmentLifetime> {
        self.entries
            .chunk_by(|left, right| {
                left.lifetime_id == right.lifetime_id && left.generation == right.generation
            })
            .map(|run| v1::SegmentLifetime {
                lifetime_id: run[0].lifetime_id.0.to_vec().into(),
                generation: run[0].generation,
                entries: run.len() as u64,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
