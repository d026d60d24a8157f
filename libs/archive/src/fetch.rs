//! Reading entries of a segment from the object store, or verifying all of it there: the segment's reader says which bytes it needs, this fetches them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::task::spawn_blocking;

use crate::Error;
use crate::names::SegmentKey;
use crate::objects::ObjectStore;
use crate::segment::{
    IndexRead, ReaderStep, SegmentIndex, SegmentPart, SegmentReader, SegmentVerifier, VerifiedSegment,
    first_index_range, read_index,
};

/// Reads the index of a segment whose object has `object_bytes` bytes.
pub async fn fetch_index(
    objects: &ObjectStore,
    key: SegmentKey,
    object_bytes: u64,
) -> Result<SegmentIndex, Error> {
    let name = key.to_string();
    let mut range = first_index_range(object_bytes);
    loop {
        let end = objects.get_range(&name, range.clone()).await?;
        match read_index(&key, object_bytes, &end)? {
            IndexRead::Index(index) => return Ok(index),
            // Each time it is more, and never more than the object.
            IndexRead::Wanted(wanted) if wanted.start < range.start => range = wanted,
            IndexRead::Wanted(wanted) => {
                return Err(Error::Bug(format!(
                    "segment {name}: bytes {} to {} are wanted once more",
                    wanted.start, wanted.end
                )));
            }
        }
    }
}

/// Reads a whole segment, whose object must have `object_bytes` bytes, and checks all of it: its size, its digest against its
/// name, its index, every entry's length and digest. Holds a few MiB.
///
/// [`crate::Failure::NotFound`] if there is no such object, [`Error::SegmentDamaged`] if it is not what its name promises.
pub async fn verify_stored(
    objects: &ObjectStore,
    key: SegmentKey,
    object_bytes: u64,
) -> Result<VerifiedSegment, Error> {
    let name = key.to_string();
    let mut chunks = objects.get_stream(&name).await?;
    if chunks.bytes() != object_bytes {
        return Err(Error::SegmentDamaged {
            key: name,
            entry_seq: None,
            reason: format!("it has {} bytes instead of {object_bytes}", chunks.bytes()),
        });
    }
    let index = Arc::new(fetch_index(objects, key, object_bytes).await?);
    let mut verifier = SegmentVerifier::new(key, index)?;
    while let Some(chunk) = chunks.next_chunk().await? {
        // Decompressing takes milliseconds a frame.
        verifier = spawn_blocking(move || verifier.push(&chunk).map(|()| verifier))
            .await
            .map_err(|error| Error::Bug(format!("verifying a segment ended: {error}")))??;
    }
    verifier.finish()
}

/// What a segment is, without reading all of it where the store keeps its SHA-256: then the digest and the index are compared
/// with the name, and each entry is checked when it is read. Otherwise as [`verify_stored`], with the same errors.
pub async fn describe_stored(
    objects: &ObjectStore,
    key: SegmentKey,
    object_bytes: u64,
) -> Result<VerifiedSegment, Error> {
    let name = key.to_string();
    let head = objects.head(&name).await?;
    let Some(object_digest) = head.sha256.as_deref().and_then(kept_digest) else {
        return verify_stored(objects, key, object_bytes).await;
    };
    let damaged = |reason: String| Error::SegmentDamaged {
        key: name.clone(),
        entry_seq: None,
        reason,
    };
    if head.bytes != object_bytes {
        return Err(damaged(format!(
            "it has {} bytes instead of {object_bytes}",
            head.bytes
        )));
    }
    if !key.names(&object_digest) {
        return Err(damaged("its digest is not the one in its name".to_owned()));
    }
    let index = fetch_index(objects, key, object_bytes).await?;
    Ok(VerifiedSegment {
        object_digest,
        object_bytes,
        entries: index.entries().len() as u64,
        plain_bytes: index.plain_bytes(),
    })
}

/// The SHA-256 that a store keeps of an object that went up in one piece.
fn kept_digest(text: &str) -> Option<[u8; 32]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// Reads some entries of one segment, in order. Holds what one request fetches, a frame, and what it hands out.
pub struct SegmentFetch {
    objects: ObjectStore,
    name: String,
    /// Absent after an error.
    reader: Option<SegmentReader>,
}

/// What a reader has to say before it needs bytes, or before enough is there.
struct Stepped {
    reader: SegmentReader,
    parts: Vec<SegmentPart>,
    wanted: Option<std::ops::Range<u64>>,
}

impl SegmentFetch {
    /// Reads the segment's index, and gets ready for the entries `first` to `last`. [`Error::NotInSegment`] if it lacks one
    /// of them.
    pub async fn open(
        objects: &ObjectStore,
        key: SegmentKey,
        object_bytes: u64,
        first: u64,
        last: u64,
    ) -> Result<Self, Error> {
        let index = Arc::new(fetch_index(objects, key, object_bytes).await?);
        Self::with_index(objects, key, index, first, last)
    }

    /// The same with an index that is known.
    pub fn with_index(
        objects: &ObjectStore,
        key: SegmentKey,
        index: Arc<SegmentIndex>,
        first: u64,
        last: u64,
    ) -> Result<Self, Error> {
        Ok(Self {
            objects: objects.clone(),
            name: key.to_string(),
            reader: Some(SegmentReader::new(key, index, first, last)?),
        })
    }

    /// The next parts, about `max_bytes` plain bytes of them and at least one; none once all were handed out. After an error
    /// there is nothing more to be had.
    pub async fn next_parts(&mut self, max_bytes: usize) -> Result<Vec<SegmentPart>, Error> {
        let mut parts = Vec::new();
        loop {
            let Some(reader) = self.reader.take() else {
                return Err(Error::Bug(format!(
                    "segment {} is read on after an error",
                    self.name
                )));
            };
            // Decompressing takes milliseconds a frame.
            let stepped = spawn_blocking(move || step(reader, parts, max_bytes))
                .await
                .map_err(|error| Error::Bug(format!("reading a segment ended: {error}")))??;
            parts = stepped.parts;
            let mut reader = stepped.reader;
            if let Some(wanted) = stepped.wanted.clone() {
                reader.supply(self.objects.get_range(&self.name, wanted).await?)?;
            }
            self.reader = Some(reader);
            if stepped.wanted.is_none() {
                return Ok(parts);
            }
        }
    }
}

fn step(mut reader: SegmentReader, mut parts: Vec<SegmentPart>, max_bytes: usize) -> Result<Stepped, Error> {
    let mut bytes: usize = parts.iter().map(|part| part.bytes.len()).sum();
    let mut wanted = None;
    while parts.is_empty() || bytes < max_bytes {
        match reader.step()? {
            ReaderStep::Part(part) => {
                bytes += part.bytes.len();
                parts.push(part);
            }
            ReaderStep::Wanted(range) => {
                wanted = Some(range);
                break;
            }
            ReaderStep::Done => break,
        }
    }
    Ok(Stepped {
        reader,
        parts,
        wanted,
    })
}
