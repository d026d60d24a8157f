//! The parts of an entry that was not complete when the state was taken: `wakelog.v1.ArchivedPart`s, one after the other, each
//! after its length.

use bytes::{Buf as _, Bytes, BytesMut};
use prost::Message as _;
use wakelog_archive::{ObjectName, ObjectStore, SnapshotKey};
use wakelog_model::{Digest16, decode_part};
use wakelog_proto::v1::ArchivedPart;
use wakelog_store::{PartRow, Store};

use super::state::damage;
use crate::Error;

/// Bytes of one part with its length, at most: 512 KiB that zstd can't compress, and a little.
const PART_LIMIT: usize = 1024 * 1024;

/// Bytes of parts that are stored at a time.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Stores the parts of entry `entry_seq`, which have these digests. The inner error says what is wrong with the object.
pub(super) async fn restore(
    (store, epoch): (&Store, i64),
    objects: &ObjectStore,
    key: SnapshotKey,
    entry_seq: u64,
    digests: &[Digest16],
) -> Result<Result<(), String>, Error> {
    let name = ObjectName::Parts(key).to_string();
    let mut chunks = match objects.get_stream(&name).await {
        Ok(chunks) => chunks,
        Err(error) => return damage(error).map(Err),
    };
    let mut reading = Reading {
        key,
        entry_seq,
        digests,
        due: 0,
        pending: BytesMut::new(),
    };
    let mut page: Vec<PartRow> = Vec::new();
    loop {
        let chunk = match chunks.next_chunk().await {
            Ok(chunk) => chunk,
            Err(error) => return damage(error).map(Err),
        };
        let is_last = chunk.is_none();
        reading.pending.extend_from_slice(&chunk.unwrap_or_default());
        loop {
            match reading.next_part() {
                Ok(Some(part)) => page.push(part),
                Ok(None) => break,
                Err(wrong) => return Ok(Err(wrong)),
            }
        }
        let bytes: usize = page.iter().map(|part| part.body.len()).sum();
        if !page.is_empty() && (is_last || bytes >= PAGE_BYTES) {
            store.restore_parts(epoch, &page).await?;
            page.clear();
        }
        if is_last {
            break;
        }
    }
    Ok(reading.finish())
}

/// What was read so far. Pure.
struct Reading<'a> {
    key: SnapshotKey,
    entry_seq: u64,
    /// What the state knows of the parts.
    digests: &'a [Digest16],
    /// The part that comes next.
    due: u32,
    pending: BytesMut,
}

impl Reading<'_> {
    /// The next part; `None` if it is not there as a whole yet.
    fn next_part(&mut self) -> Result<Option<PartRow>, String> {
        let mut ahead = &self.pending[..];
        let Ok(length) = prost::decode_length_delimiter(&mut ahead) else {
            // A length has at most ten bytes.
            return match self.pending.len() < 10 {
                true => Ok(None),
                false => Err("it is not a row of parts".to_owned()),
            };
        };
        if length > PART_LIMIT {
            return Err(format!(
                "a part has {length} bytes, at most {PART_LIMIT} are taken"
            ));
        }
        if ahead.len() < length {
            return Ok(None);
        }
        let prefix = self.pending.len() - ahead.len();
        self.pending.advance(prefix);
        let part = self.pending.split_to(length).freeze();
        self.take(part).map(Some)
    }

    fn take(&mut self, bytes: Bytes) -> Result<PartRow, String> {
        let part = ArchivedPart::decode(bytes).map_err(|error| error.to_string())?;
        if part.part != self.due {
            return Err(format!("part {} comes where {} is due", part.part, self.due));
        }
        let part_digest = Digest16::from_slice(&part.part_digest)
            .ok_or_else(|| format!("part {} has no digest", part.part))?;
        if self.digests.get(self.due as usize) != Some(&part_digest) {
            return Err(format!("part {} is not the one that the state knows", part.part));
        }
        self.due += 1;
        decode_part(part.encoding, &part.body, part.plain_length as usize, part_digest)
            .map_err(|error| format!("part {}: {error}", part.part))?;
        Ok(PartRow {
            session: self.key.session,
            entry_seq: self.entry_seq,
            part: part.part,
            last: false,
            checkpoint: part.checkpoint,
            generation: part.generation,
            encoding: part.encoding,
            plain_length: part.plain_length,
            part_digest,
            body: part.body,
        })
    }

    fn finish(&self) -> Result<(), String> {
        let parts = self.digests.len();
        match self.due as usize == parts && self.pending.is_empty() {
            true => Ok(()),
            false => Err(format!("it has {} parts of {parts}", self.due)),
        }
    }
}

#[cfg(test)]
mod tests;
