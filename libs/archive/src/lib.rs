//! The archive: what entries look like as objects, and the object store that holds them. No database: which objects
//! there should be is written down elsewhere.
//!
//! | module | decision |
//! |---|---|
//! | [`names`] | what every object is called |
//! | [`segment`] | archived entries as one object: written, read in ranges, verified |
//! | [`spool`] | an object's bytes before they are uploaded, in bounded memory |
//! | [`fetch`] | reading entries of a segment from the object store |
//! | [`objects`] | the object store: uploads that are verified, reads, lists, deletes; bounds and retries |
//! | [`error`] | what can go wrong, whether it may have had an effect, whether trying again may help |
//!
//! The digest of an object is part of its name. So an upload can be repeated without harm, whatever became of the
//! first one, and no conditional write is needed.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod error;
pub mod fetch;
pub mod names;
pub mod objects;
pub mod segment;
pub mod spool;

pub use error::{Effect, Error};
pub use fetch::{SegmentFetch, describe_stored, fetch_index, verify_stored};
pub use names::{
    COVERED_FORMAT, COVERED_PREFIX, CoveredKey, ERASED_FORMAT, ERASED_PREFIX, MARK_LIMIT, ObjectName,
    PARTS_PREFIX, SESSIONS_PREFIX, STATE_FORMAT, STATES_PREFIX, SegmentKey, SnapshotKey, session_prefix,
};
pub use objects::{
    BucketState, Failure, ListPage, MOST_READ_BYTES, ObjectChunks, ObjectHead, ObjectInfo, ObjectStore,
    Operation, Options, Put, RequestError, RetryPolicy, Verified,
};
pub use segment::{
    EntryHead, IndexEntry, IndexFrame, IndexRead, ReaderStep, SealedSegment, SegmentIndex, SegmentPart,
    SegmentReader, SegmentVerifier, SegmentWriter, VerifiedSegment, first_index_range, read_index,
    verify_spool,
};
pub use spool::{Spool, SpoolOptions, SpoolWriter};
