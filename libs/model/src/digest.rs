//! Part digest, entry digest and remembered hash (DESIGN 2).

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The first 16 bytes of a SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest16(pub [u8; 16]);

impl Digest16 {
    /// Reads a digest from exactly 16 bytes.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Digest16 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest16 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest16({self})")
    }
}

/// The digest of a part's plain bytes.
pub fn part_digest(plain: &[u8]) -> Digest16 {
    truncate(Sha256::digest(plain))
}

/// The digest of an entry: the part's own if there is one part, else that function over the part digests in order.
/// `None` for no parts: an entry has at least one.
pub fn entry_digest(part_digests: &[Digest16]) -> Option<Digest16> {
    match part_digests {
        [] => None,
        [only] => Some(*only),
        many => {
            let mut hasher = Sha256::new();
            for digest in many {
                hasher.update(digest.0);
            }
            Some(truncate(hasher.finalize()))
        }
    }
}

/// What the fold remembers of a complete entry, to tell a repeat from a conflict.
pub fn remembered_hash(checkpoint: bool, part_count: u32, entry_digest: Digest16) -> Digest16 {
    let mut hasher = Sha256::new();
    hasher.update([u8::from(checkpoint)]);
    hasher.update(part_count.to_be_bytes());
    hasher.update(entry_digest.0);
    truncate(hasher.finalize())
}

/// Takes the part digests of an entry as they arrive.
#[derive(Debug, Clone, Default)]
pub struct EntryDigester {
    digests: Vec<Digest16>,
}

impl EntryDigester {
    /// Takes the next part's digest.
    pub fn push(&mut self, digest: Digest16) {
        self.digests.push(digest);
    }

    /// Parts taken so far.
    pub fn part_count(&self) -> u32 {
        self.digests.len() as u32
    }

    /// The entry digest over the parts taken so far; `None` before the first.
    pub fn finish(&self) -> Option<Digest16> {
        entry_digest(&self.digests)
    }
}

fn truncate(hash: impl AsRef<[u8]>) -> Digest16 {
    let mut short = [0; 16];
    short.copy_from_slice(&hash.as_ref()[..16]);
    Digest16(short)
}
