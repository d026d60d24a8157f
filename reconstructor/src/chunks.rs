//! Cutting a body into messages, and summing up what was cut. Pure.

use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};
use wakelog_proto::v1::ResumeBodyClose;

use crate::body::Range;

/// Small parts are gathered up to this many bytes: a message each would cost more than its bytes.
const GATHERED_BYTES: usize = 128 * 1024;

/// Takes the plain parts of a body in order, and hands out chunks no larger than a part plus what was gathered before.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    gathered: BytesMut,
    length: u64,
    hasher: Sha256,
}

impl Chunks {
    /// Takes the next part. Hands out at most two chunks: what was gathered, and a part that needs no gathering.
    pub(crate) fn push(&mut self, plain: Bytes) -> [Option<Bytes>; 2] {
        self.length += plain.len() as u64;
        self.hasher.update(&plain);
        if plain.len() >= GATHERED_BYTES {
            return [self.take_gathered(), Some(plain)];
        }
        self.gathered.extend_from_slice(&plain);
        if self.gathered.len() >= GATHERED_BYTES {
            return [self.take_gathered(), None];
        }
        [None, None]
    }

    /// The last chunk, if there is one, and the body's close.
    pub(crate) fn finish(mut self, range: Range) -> (Option<Bytes>, ResumeBodyClose) {
        let rest = self.take_gathered();
        let close = ResumeBodyClose {
            length: self.length,
            sha256: self.hasher.finalize().to_vec().into(),
            first_entry_seq: range.first,
            last_entry_seq: range.last,
        };
        (rest, close)
    }

    fn take_gathered(&mut self) -> Option<Bytes> {
        (!self.gathered.is_empty()).then(|| self.gathered.split().freeze())
    }
}

#[cfg(test)]
mod tests {
    use wakelog_model::limits::PART_SIZE;

    use super::*;
    use crate::fixtures::session;

    fn cut(parts: &[Vec<u8>]) -> (Vec<Bytes>, ResumeBodyClose) {
        let mut chunks = Chunks::default();
        let mut out = Vec::new();
        for part in parts {
            out.extend(chunks.push(part.clone().into()).into_iter().flatten());
        }
        let (rest, close) = chunks.finish(Range {
            session: session(),
            first: 3,
            last: 9,
        });
        out.extend(rest);
        (out, close)
    }

    #[test]
    fn chunks_hold_the_parts_in_order_and_the_close_sums_them_up() {
        let sizes = [
            1,
            5,
            GATHERED_BYTES - 1,
            1,
            PART_SIZE,
            3,
            PART_SIZE,
            PART_SIZE,
            2,
            GATHERED_BYTES,
        ];
        for count in 0..=sizes.len() {
            let parts: Vec<Vec<u8>> = sizes[..count]
                .iter()
                .enumerate()
                .map(|(at, size)| vec![at as u8; *size])
                .collect();
            let whole = parts.concat();
            let (chunks, close) = cut(&parts);
            assert_eq!(chunks.concat(), whole);
            assert!(
                chunks
                    .iter()
                    .all(|chunk| !chunk.is_empty() && chunk.len() <= PART_SIZE)
            );
            assert_eq!(close.length, whole.len() as u64);
            assert_eq!(close.sha256, Sha256::digest(&whole).to_vec());
            assert_eq!((close.first_entry_seq, close.last_entry_seq), (3, 9));
        }
    }

    #[test]
    fn small_parts_share_a_message() {
        let (chunks, _) = cut(&vec![vec![b'x'; 100]; 1_000]);
        assert_eq!(chunks.len(), 1);
    }
}
