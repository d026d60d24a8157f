//! The whole object against its name and its index.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};

use super::envelope::{IndexRead, first_index_range, read_index};
use super::index::SegmentIndex;
use super::reader::{ReaderStep, SegmentReader};
use super::{MAX_INDEX_BYTES, damaged};
use crate::Error;
use crate::names::SegmentKey;
use crate::spool::Spool;

/// Bytes that [`verify_spool`] reads at a time.
const CHUNK_BYTES: u64 = 1024 * 1024;

/// What a whole object was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedSegment {
    /// SHA-256 of the object.
    pub object_digest: [u8; 32],
    /// Bytes of the object.
    pub object_bytes: u64,
    /// Entries of the segment.
    pub entries: u64,
    /// Plain bytes of the entries.
    pub plain_bytes: u64,
}

/// Takes a whole object from its start and checks all of it: every frame, every entry's digest and length, the index at
/// the end against the one that was read before, and the object digest against the name.
///
/// Holds what a [`SegmentReader`] holds, what it asked for last, and the end of the object with the index.
pub struct SegmentVerifier {
    key: SegmentKey,
    index: Arc<SegmentIndex>,
    reader: SegmentReader,
    hasher: Sha256,
    received: u64,
    /// Bytes from the start of what the reader needs next; after the last frame the end of the object.
    pending: BytesMut,
    frames_done: bool,
}

impl SegmentVerifier {
    /// A verifier of the object with this index.
    pub fn new(key: SegmentKey, index: Arc<SegmentIndex>) -> Result<Self, Error> {
        let reader = SegmentReader::new(key, Arc::clone(&index), key.min_entry_seq, key.max_entry_seq)?;
        Ok(Self {
            key,
            index,
            reader,
            hasher: Sha256::new(),
            received: 0,
            pending: BytesMut::new(),
            frames_done: false,
        })
    }

    /// Takes the next bytes of the object. [`Error::SegmentDamaged`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hasher.update(bytes);
        self.received += bytes.len() as u64;
        self.pending.extend_from_slice(bytes);
        while !self.frames_done {
            match self.reader.step()? {
                ReaderStep::Part(_) => {}
                ReaderStep::Done => self.frames_done = true,
                ReaderStep::Wanted(range) => {
                    // A few MiB: the reader bounds what it asks for.
                    let wanted = (range.end - range.start) as usize;
                    if self.pending.len() < wanted {
                        return Ok(());
                    }
                    self.reader.supply(self.pending.split_to(wanted).freeze())?;
                }
            }
        }
        if self.pending.len() > 2 * MAX_INDEX_BYTES + bytes.len() {
            return Err(damaged(&self.key, None, "it goes on behind its index"));
        }
        Ok(())
    }

    /// The verdict once the object has ended.
    pub fn finish(self) -> Result<VerifiedSegment, Error> {
        if !self.frames_done {
            return Err(damaged(
                &self.key,
                None,
                format!("it ends after {} bytes, within its frames", self.received),
            ));
        }
        match read_index(&self.key, self.received, &self.pending)? {
            IndexRead::Index(index) if index == *self.index => {}
            IndexRead::Index(_) => return Err(damaged(&self.key, None, "its index is another one now")),
            IndexRead::Wanted(_) => {
                return Err(damaged(&self.key, None, "its index reaches into its frames"));
            }
        }
        let object_digest: [u8; 32] = self.hasher.finalize().into();
        if !self.key.names(&object_digest) {
            return Err(damaged(
                &self.key,
                None,
                format!("its digest is {}", hex::encode(object_digest)),
            ));
        }
        Ok(VerifiedSegment {
            object_digest,
            object_bytes: self.received,
            entries: self.index.entries.len() as u64,
            plain_bytes: self.index.plain_bytes(),
        })
    }
}

impl std::fmt::Debug for SegmentVerifier {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SegmentVerifier")
            .field("key", &self.key)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

/// Verifies an object that is at hand as a whole. Blocks while it reads the spool.
pub fn verify_spool(key: &SegmentKey, object: &Spool) -> Result<VerifiedSegment, Error> {
    let mut range = first_index_range(object.length());
    let index = loop {
        let end: Bytes = object.read(range)?;
        match read_index(key, object.length(), &end)? {
            IndexRead::Index(index) => break Arc::new(index),
            IndexRead::Wanted(wanted) => range = wanted,
        }
    };
    let mut verifier = SegmentVerifier::new(*key, index)?;
    let mut offset = 0;
    while offset < object.length() {
        let end = object.length().min(offset + CHUNK_BYTES);
        verifier.push(&object.read(offset..end)?)?;
        offset = end;
    }
    verifier.finish()
}
