//! Where an entry's bytes are split, and what a well-formed part is.

use bytes::Bytes;

use crate::Error;
use crate::limits::PART_SIZE;

/// Checks a part's plain length: every part but the last has exactly [`PART_SIZE`] bytes, the last at least one and at
/// most that.
pub fn check_part_length(part: u32, last: bool, plain_length: usize) -> Result<(), Error> {
    if last && (1..=PART_SIZE).contains(&plain_length) {
        return Ok(());
    }
    if !last && plain_length == PART_SIZE {
        return Ok(());
    }
    let expected = if last {
        "1 to 524288, as an entry's last part"
    } else {
        "524288, as it is not the last part"
    };
    Err(Error::PartLength {
        part,
        actual: plain_length,
        expected,
    })
}

/// Splits an entry's bytes at the fixed offsets. An empty entry has no parts.
pub fn split_parts(entry: &Bytes) -> impl ExactSizeIterator<Item = Bytes> + '_ {
    (0..entry.len().div_ceil(PART_SIZE)).map(move |part| {
        let start = part * PART_SIZE;
        entry.slice(start..entry.len().min(start + PART_SIZE))
    })
}

/// Cuts a stream of chunks into parts, holding no more than one part and one chunk.
///
/// A part is handed out only when it is known whether it is the last, so the final part of a stream comes from
/// [`PartSplitter::finish`].
#[derive(Debug, Default)]
pub struct PartSplitter {
    pending: Vec<u8>,
}

impl PartSplitter {
    /// Takes a chunk and hands out the parts that are certainly not the last.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Bytes> {
        self.pending.extend_from_slice(chunk);
        let mut parts = Vec::new();
        while self.pending.len() > PART_SIZE {
            let rest = self.pending.split_off(PART_SIZE);
            parts.push(Bytes::from(std::mem::replace(&mut self.pending, rest)));
        }
        parts
    }

    /// The last part; `None` if nothing was pushed.
    pub fn finish(self) -> Option<Bytes> {
        (!self.pending.is_empty()).then(|| Bytes::from(self.pending))
    }
}
