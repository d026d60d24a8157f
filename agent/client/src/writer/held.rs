//! Entries that are not acknowledged yet, and how their bytes are produced, again if need be.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use wakelog_model::limits::PART_SIZE;
use wakelog_model::{Digest16, part_digest};
use wakelog_proto::v1::TranscriptPart;

use crate::Error;

type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// Where the bytes of an entry come from, as often as they are needed.
pub(crate) enum Source {
    /// Kept in memory.
    Kept(Bytes),
    /// Read again from where they are.
    Reopened(Box<dyn Fn() -> io::Result<Reader> + Send + Sync>),
}

/// An entry that was appended and is not acknowledged.
pub(crate) struct HeldEntry {
    pub(crate) entry_seq: u64,
    pub(crate) checkpoint: bool,
    source: Source,
    /// Digests of the parts that were sent from a source that is read again: parts of one entry may come from several
    /// tries, so every try must give the same ones.
    sent: Vec<Digest16>,
}

impl HeldEntry {
    pub(crate) fn new(entry_seq: u64, checkpoint: bool, source: Source) -> Self {
        Self {
            entry_seq,
            checkpoint,
            source,
            sent: Vec::new(),
        }
    }

    /// Bytes of memory that the entry takes until it is acknowledged.
    pub(crate) fn kept_bytes(&self) -> u64 {
        match &self.source {
            Source::Kept(bytes) => bytes.len() as u64,
            Source::Reopened(_) => 0,
        }
    }

    /// Starts producing parts from the first.
    pub(crate) fn start(&self) -> Result<Outgoing, Error> {
        let bytes = match &self.source {
            Source::Kept(bytes) => OutgoingBytes::Kept(bytes.clone()),
            Source::Reopened(open) => OutgoingBytes::Read {
                reader: open().map_err(|error| Error::Source {
                    entry_seq: self.entry_seq,
                    error,
                })?,
                buffer: BytesMut::new(),
            },
        };
        Ok(Outgoing { bytes, next_part: 0 })
    }

    /// Produces the next part. Cancelling it loses nothing: what was read stays in `outgoing`.
    pub(crate) async fn next_part(&mut self, outgoing: &mut Outgoing) -> Result<TranscriptPart, Error> {
        let (content, last) = outgoing.bytes.next(self.entry_seq).await?;
        let part = outgoing.next_part;
        if matches!(self.source, Source::Reopened(_)) {
            self.check_unchanged(part, &content)?;
        }
        outgoing.next_part += 1;
        Ok(TranscriptPart {
            entry_seq: self.entry_seq,
            part,
            last,
            checkpoint: self.checkpoint,
            content,
        })
    }

    fn check_unchanged(&mut self, part: u32, content: &[u8]) -> Result<(), Error> {
        let digest = part_digest(content);
        match self.sent.get(part as usize) {
            Some(before) if *before != digest => Err(Error::SourceChanged {
                entry_seq: self.entry_seq,
            }),
            Some(_) => Ok(()),
            None => {
                self.sent.push(digest);
                Ok(())
            }
        }
    }
}

/// An entry on its way out.
pub(crate) struct Outgoing {
    bytes: OutgoingBytes,
    next_part: u32,
}

enum OutgoingBytes {
    /// What is left of an entry in memory.
    Kept(Bytes),
    /// A source that is being read, and what was read of it.
    Read { reader: Reader, buffer: BytesMut },
}

impl OutgoingBytes {
    /// The next part's bytes, and whether it is the last.
    async fn next(&mut self, entry_seq: u64) -> Result<(Bytes, bool), Error> {
        match self {
            Self::Kept(rest) => {
                let content = rest.split_to(rest.len().min(PART_SIZE));
                Ok((content, rest.is_empty()))
            }
            Self::Read { reader, buffer } => {
                // One byte beyond the part tells whether it is the last.
                let mut ended = false;
                while buffer.len() <= PART_SIZE && !ended {
                    buffer.reserve(PART_SIZE + 1 - buffer.len());
                    let read = reader.read_buf(buffer).await;
                    ended = read.map_err(|error| Error::Source { entry_seq, error })? == 0;
                }
                if buffer.is_empty() {
                    return Err(Error::EmptyEntry);
                }
                let content = buffer.split_to(buffer.len().min(PART_SIZE)).freeze();
                Ok((content, buffer.is_empty()))
            }
        }
    }
}

#[cfg(test)]
mod tests;
