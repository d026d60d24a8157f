//! How a part's bytes are stored, and back. Every stored body names its encoding.

use bytes::Bytes;

use crate::Error;
use crate::contexts;
use crate::digest::{Digest16, part_digest};
use crate::limits::PART_SIZE;

/// Parts below this many plain bytes are stored plain: a zstd frame would not pay for its header.
const SMALLEST_COMPRESSED: usize = 256;

/// How a stored body is encoded. The numbers are those of `wakelog.v1.PartEncoding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Encoding {
    /// The plain bytes.
    Plain = 1,
    /// One zstd frame.
    Zstd = 2,
}

impl TryFrom<i32> for Encoding {
    type Error = Error;

    fn try_from(code: i32) -> Result<Self, Error> {
        match code {
            1 => Ok(Self::Plain),
            2 => Ok(Self::Zstd),
            _ => Err(Error::UnknownEncoding { code }),
        }
    }
}

/// Encodes a part: zstd where that is smaller, else plain.
pub fn encode_part(plain: &Bytes) -> (Encoding, Bytes) {
    if plain.len() < SMALLEST_COMPRESSED {
        return (Encoding::Plain, plain.clone());
    }
    match contexts::compress(plain) {
        Ok(compressed) if compressed.len() < plain.len() => (Encoding::Zstd, compressed.into()),
        _ => (Encoding::Plain, plain.clone()),
    }
}

/// Decodes a stored part and checks it against the length and the digest that were stored with it, so that a flipped
/// bit is a typed error and never other bytes (byte-exact).
pub fn decode_part(
    encoding: i32,
    body: &Bytes,
    plain_length: usize,
    digest: Digest16,
) -> Result<Bytes, Error> {
    let plain = match Encoding::try_from(encoding)? {
        Encoding::Plain => body.clone(),
        Encoding::Zstd => contexts::decompress(body, plain_length.min(PART_SIZE))
            .map_err(|error| Error::Undecodable {
                reason: error.to_string(),
            })?
            .into(),
    };
    if plain.len() != plain_length {
        return Err(Error::LengthMismatch {
            expected: plain_length,
            actual: plain.len(),
        });
    }
    let actual = part_digest(&plain);
    if actual != digest {
        return Err(Error::DigestMismatch {
            expected: digest,
            actual,
        });
    }
    Ok(plain)
}
