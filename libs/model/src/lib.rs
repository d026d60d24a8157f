//! Ids, parts, digests, encodings and limits that every part of Wakelog agrees on. Pure: no I/O, no clock.
//!
//! | module | decision |
//! |---|---|
//! | [`ids`] | what a session, a lifetime, a writer's nonce and an idempotency key look like |
//! | [`limits`] | the constants of the protocol |
//! | [`digest`] | part digest, entry digest, remembered hash |
//! | [`part`] | where an entry's bytes are split, and what a well-formed part is |
//! | [`encoding`] | how a part's bytes are stored, and back |
//! | `contexts` | zstd contexts, kept between parts |

mod contexts;
pub mod digest;
pub mod encoding;
pub mod ids;
pub mod limits;
pub mod part;

pub use digest::{Digest16, EntryDigester, entry_digest, part_digest, remembered_hash};
pub use encoding::{Encoding, decode_part, encode_part};
pub use ids::{IdempotencyKey, LifetimeId, SessionId, WriterNonce};
pub use part::{PartSplitter, check_part_length, split_parts};

/// What can be wrong with a value that this crate reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not a session id.
    #[error("session id {value:?} is not a UUID in lower-case hyphenated form")]
    SessionId {
        /// What was given.
        value: String,
    },
    /// Bytes of another length than the id has.
    #[error("{what} has {actual} bytes, it must have {expected}")]
    Length {
        /// The name of the id.
        what: &'static str,
        /// The bytes it must have.
        expected: usize,
        /// The bytes it has.
        actual: usize,
    },
    /// The text is not an idempotency key.
    #[error("idempotency key {value:?} is not `<32 hex digits>-<entry_seq>`")]
    IdempotencyKey {
        /// What was given.
        value: String,
    },
    /// A part has the wrong number of plain bytes.
    #[error("part {part} has {actual} plain bytes, it must have {expected}")]
    PartLength {
        /// The part's number.
        part: u32,
        /// The bytes it has.
        actual: usize,
        /// What it must have, in words.
        expected: &'static str,
    },
    /// The encoding is not one that this build knows.
    #[error("part encoding {code} is not known to this build")]
    UnknownEncoding {
        /// The encoding's number on the wire.
        code: i32,
    },
    /// The stored body does not decode.
    #[error("stored part does not decode: {reason}")]
    Undecodable {
        /// What the decoder said.
        reason: String,
    },
    /// The stored body decodes to other bytes than were stored.
    #[error("stored part decodes to digest {actual}, it was stored with {expected}")]
    DigestMismatch {
        /// The digest that was stored with the part.
        expected: Digest16,
        /// The digest of the decoded bytes.
        actual: Digest16,
    },
    /// The stored body decodes to another length than was stored.
    #[error("stored part decodes to {actual} bytes, it was stored with {expected}")]
    LengthMismatch {
        /// The plain length that was stored with the part.
        expected: usize,
        /// The length of the decoded bytes.
        actual: usize,
    },
}
