//! What can be wrong with a record by itself. Says field names, lengths and numbers, never what the bytes are.

/// Why a record is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// No variant is set, or one that this build does not know.
    #[error("the record holds no known variant")]
    NoRecord,
    /// A text that must not be empty is.
    #[error("{field} is empty")]
    TextEmpty {
        /// The field.
        field: &'static str,
    },
    /// A text is too long.
    #[error("{field} has {actual} bytes, it may have {limit}")]
    TextTooLong {
        /// The field.
        field: &'static str,
        /// The bytes it may have.
        limit: usize,
        /// The bytes it has.
        actual: usize,
    },
    /// A text holds a NUL, which the hot tail cannot store.
    #[error("{field} holds a NUL")]
    TextWithNul {
        /// The field.
        field: &'static str,
    },
    /// Too many labels.
    #[error("the session has {actual} labels, it may have {limit}")]
    TooManyLabels {
        /// The labels it may have.
        limit: usize,
        /// The labels it has.
        actual: usize,
    },
    /// The parent is not a session id.
    #[error("parent_session_id is not a session id")]
    ParentNotASession,
    /// The session is its own parent.
    #[error("the session is its own parent")]
    ParentIsItself,
    /// The role is not one that this build knows.
    #[error("access role {number} is not known to this build")]
    UnknownRole {
        /// The role's number on the wire.
        number: i32,
    },
    /// Bytes of another length than the field has.
    #[error("{field} has {actual} bytes, it must have {expected}")]
    Length {
        /// The field.
        field: &'static str,
        /// The bytes it must have.
        expected: usize,
        /// The bytes it has.
        actual: usize,
    },
    /// The bind's lifetime id is not the one that follows from it.
    #[error("lifetime_id does not follow from the session, the request and the generation")]
    LifetimeIdNotDerived,
    /// The generation is 0, or above what the hot tail can store.
    #[error("generation {generation} is not within 1 to 2^63 - 1")]
    GenerationOutOfRange {
        /// The generation.
        generation: u64,
    },
    /// The part's generation is not its lifetime's.
    #[error("generation {actual} is not the lifetime's, which is {expected}")]
    GenerationNotTheLifetimes {
        /// The lifetime's generation.
        expected: u64,
        /// The part's generation.
        actual: u64,
    },
    /// The lifetime_seq is 0, or the entry_seq is above what the hot tail can store.
    #[error("lifetime_seq {lifetime_seq} is 0 or leaves the range of an entry_seq")]
    SequenceOutOfRange {
        /// The lifetime_seq.
        lifetime_seq: u64,
    },
    /// More parts than the largest entry has.
    #[error("part {part} is beyond the largest entry, which has {limit} parts")]
    PartOutOfRange {
        /// The part.
        part: u32,
        /// The parts that the largest entry has.
        limit: u32,
    },
    /// The encoding is not one that this build knows.
    #[error("unknown encoding {number}")]
    UnknownEncoding {
        /// The encoding's number on the wire.
        number: i32,
    },
    /// The part has the wrong number of plain bytes.
    #[error("part {part} (last: {last}) cannot have {plain_length} plain bytes")]
    PlainLength {
        /// The part.
        part: u32,
        /// Whether it is the last.
        last: bool,
        /// The plain bytes it says it has.
        plain_length: u32,
    },
    /// The part has no bytes.
    #[error("body is empty")]
    BodyEmpty,
    /// The encoded part is larger than any encoding makes it.
    #[error("body has {actual} bytes, it may have {limit}")]
    BodyTooLong {
        /// The bytes it may have.
        limit: usize,
        /// The bytes it has.
        actual: usize,
    },
    /// The last part says that the entry has no parts.
    #[error("the last part has no part_count")]
    PartCountMissing,
    /// A part that is not the last has a part count.
    #[error("a part that is not the last has part_count {part_count}")]
    PartCountUnexpected {
        /// The part count.
        part_count: u32,
    },
    /// A part that is not the last has an entry digest.
    #[error("a part that is not the last has an entry_digest")]
    EntryDigestUnexpected,
}
