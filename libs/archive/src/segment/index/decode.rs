//! Reading an index: nothing in it is believed before it is checked, and no number of it decides on an allocation
//! before it is known to be within the limits.

use prost::Message as _;
use uuid::Uuid;
use wakelog_model::limits::MAX_ENTRY_BYTES;
use wakelog_model::{Digest16, LifetimeId, SessionId};
use wakelog_proto::v1;

use super::{IndexEntry, IndexFrame, SegmentIndex};
use crate::Error;
use crate::names::SegmentKey;
use crate::segment::{
    FORMAT_VERSION, FRAME_BYTES, FULL_BYTES, FULL_ENTRIES, MAX_FRAME_OBJECT_BYTES, MAX_FRAMES, damaged,
};

impl SegmentIndex {
    /// `frames_end`: where the frames end within the object.
    pub(in crate::segment) fn decode(
        key: &SegmentKey,
        encoded: &[u8],
        frames_end: u64,
    ) -> Result<Self, Error> {
        let message = v1::SegmentIndex::decode(encoded)
            .map_err(|error| damaged(key, None, format!("its index does not decode: {error}")))?;
        if message.format_version != FORMAT_VERSION {
            return Err(Error::UnknownFormat {
                key: key.to_string(),
                version: message.format_version,
                known: FORMAT_VERSION,
            });
        }
        let wrong = |reason: String| damaged(key, None, reason);
        check_counts(&message).map_err(wrong)?;
        check_name(key, &message).map_err(wrong)?;
        let entries = entries(&message).map_err(wrong)?;
        let frames = frames(&message).map_err(wrong)?;
        let index = Self {
            session: key.session,
            entries,
            frames,
        };
        let framed: u64 = index.frames.iter().map(|frame| frame.plain_length).sum();
        if framed != index.plain_bytes() {
            return Err(wrong(format!(
                "its entries have {} bytes, its frames {framed}",
                index.plain_bytes()
            )));
        }
        if index.frames_bytes() != frames_end {
            return Err(wrong(format!(
                "its frames end at {}, its index starts at {frames_end}",
                index.frames_bytes()
            )));
        }
        Ok(index)
    }
}

fn check_counts(message: &v1::SegmentIndex) -> Result<(), String> {
    let entries = message.entry_plain_lengths.len();
    if entries == 0 || entries > FULL_ENTRIES {
        return Err(format!("it claims {entries} entries"));
    }
    if message.entry_digests.len() != entries * 16 {
        return Err(format!(
            "its {entries} entries have {} bytes of digests",
            message.entry_digests.len()
        ));
    }
    let frames = message.frame_plain_lengths.len();
    if frames == 0 || frames > MAX_FRAMES || frames != message.frame_object_lengths.len() {
        return Err(format!(
            "it claims {frames} frames and {} lengths of frames",
            message.frame_object_lengths.len()
        ));
    }
    Ok(())
}

fn check_name(key: &SegmentKey, message: &v1::SegmentIndex) -> Result<(), String> {
    let session = Uuid::from_slice(&message.session_id).map(SessionId);
    if session != Ok(key.session) {
        return Err("its index is of another session".to_owned());
    }
    let first = message.first_entry_seq;
    let last = first.checked_add(message.entry_plain_lengths.len() as u64 - 1);
    if first != key.min_entry_seq || last != Some(key.max_entry_seq) {
        return Err(format!(
            "its index holds {} entries from {first} on",
            message.entry_plain_lengths.len()
        ));
    }
    Ok(())
}

/// Counts and name are checked.
fn entries(message: &v1::SegmentIndex) -> Result<Vec<IndexEntry>, String> {
    let lifetimes = lifetimes(message)?;
    let checkpoints = checkpoints(message)?;
    let mut plain_offset = 0_u64;
    let digests = message.entry_digests.chunks_exact(16);
    let mut entries = Vec::with_capacity(lifetimes.len());
    let columns = message.entry_plain_lengths.iter().zip(digests);
    for ((&plain_length, digest), ((lifetime_id, generation), checkpoint)) in
        columns.zip(lifetimes.into_iter().zip(checkpoints))
    {
        let entry_seq = message.first_entry_seq + entries.len() as u64;
        if plain_length == 0 || plain_length > MAX_ENTRY_BYTES {
            return Err(format!("entry {entry_seq} claims {plain_length} bytes"));
        }
        // Only the last entry may begin below that and end beyond it, so the sum can't overflow.
        if plain_offset >= FULL_BYTES {
            return Err(format!("entry {entry_seq} begins where the segment was full"));
        }
        let mut digest_bytes = [0; 16];
        digest_bytes.copy_from_slice(digest);
        entries.push(IndexEntry {
            entry_seq,
            checkpoint,
            plain_offset,
            plain_length,
            digest: Digest16(digest_bytes),
            generation,
            lifetime_id,
        });
        plain_offset += plain_length;
    }
    Ok(entries)
}

/// One for each entry.
fn lifetimes(message: &v1::SegmentIndex) -> Result<Vec<(LifetimeId, u64)>, String> {
    let entries = message.entry_plain_lengths.len();
    let mut lifetimes = Vec::with_capacity(entries);
    for run in &message.lifetimes {
        let lifetime_id = LifetimeId::from_slice(&run.lifetime_id).map_err(|error| error.to_string())?;
        let left = (entries - lifetimes.len()) as u64;
        if run.entries == 0 || run.entries > left {
            return Err(format!(
                "lifetime {lifetime_id} claims {} entries of {left}",
                run.entries
            ));
        }
        // At most the entries that are left.
        lifetimes.resize(
            lifetimes.len() + run.entries as usize,
            (lifetime_id, run.generation),
        );
    }
    if lifetimes.len() != entries {
        return Err(format!(
            "{} of its {entries} entries have a lifetime",
            lifetimes.len()
        ));
    }
    Ok(lifetimes)
}

/// One for each entry.
fn checkpoints(message: &v1::SegmentIndex) -> Result<Vec<bool>, String> {
    let mut checkpoints = vec![false; message.entry_plain_lengths.len()];
    if !message
        .checkpoint_positions
        .is_sorted_by(|left, right| left < right)
    {
        return Err("its checkpoints do not ascend".to_owned());
    }
    for &position in &message.checkpoint_positions {
        match checkpoints.get_mut(position as usize) {
            Some(checkpoint) => *checkpoint = true,
            None => return Err(format!("it has no entry at position {position}")),
        }
    }
    Ok(checkpoints)
}

/// Counts are checked.
fn frames(message: &v1::SegmentIndex) -> Result<Vec<IndexFrame>, String> {
    let mut plain_offset = 0;
    let mut object_offset = 0;
    let mut frames = Vec::with_capacity(message.frame_plain_lengths.len());
    let lengths = message
        .frame_plain_lengths
        .iter()
        .zip(&message.frame_object_lengths);
    for (&plain_length, &object_length) in lengths {
        if plain_length == 0
            || plain_length > FRAME_BYTES as u64
            || object_length == 0
            || object_length > MAX_FRAME_OBJECT_BYTES
        {
            return Err(format!(
                "frame {} claims {object_length} bytes for {plain_length}",
                frames.len()
            ));
        }
        frames.push(IndexFrame {
            object_offset,
            object_length,
            plain_offset,
            plain_length,
        });
        // Neither can overflow: the count of frames and each length are bounded.
        plain_offset += plain_length;
        object_offset += object_length;
    }
    Ok(frames)
}
