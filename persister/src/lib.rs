//! The persister: folds the transcript topic into the hot tail, exactly once; [`verify`](verify()) that it did; and
//! [`replay`](replay()) to build an empty one again.
//!
//! | module | decision |
//! |---|---|
//! | `service` | the service: makes a consumer, and a new one when it gives up |
//! | `member` | one membership of the group: a worker for each partition, and leaving as a whole |
//! | `owner` | what happens inside the rebalance callback: the claim |
//! | `assignments` | which claim belongs to which records, and which workers have still to end |
//! | `worker` | one partition: read, fold, commit, again |
//! | `batch` | one batch: one transaction |
//! | [`options`] | how it is set up |
//! | [`status`] | what each partition is doing |
//! | `lost_commits` | noticing a database that has less than it confirmed |
//! | `lag`, `telemetry`, `pauses` | measuring, counting, waiting |
//!
//! What decides is pure and knows no store and no log:
//!
//! | module | decision |
//! |---|---|
//! | `start` | where a claimed partition starts, or why it may not |
//! | `admission` | which of the records that came are folded next |
//! | `decode` | from bytes to something that the fold can decide about, or the reason why not |
//! | `states` | the copies that a batch folds into, and what lies above a sub-session |
//! | `effects` | what a batch changes in the hot tail |
//! | `cache` | which states are remembered between batches |
//! | `verdict` | what a failed batch means for its partition |
//! | `commit_outcome` | what became of a COMMIT that nobody answered |
//! | `undecodable_limit` | when a partition stops because this build can't read it |
//! | `unreadable` | when a partition stops because the log can't be read |
//!
//! # Exactly once
//!
//! A partition belongs to whoever claimed it last: a claim raises its *epoch* in the store. A batch is one transaction
//! that locks the partition's progress, checks epoch and offset, writes what the records fold to and moves the offset.
//! So a batch is written with its offset or not at all, and never by two. What the group or a frozen process believes
//! does not matter. States are folded as copies; they replace the cache after a known COMMIT, and any other end
//! empties it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod admission;
mod assignments;
mod batch;
mod cache;
mod commit_outcome;
mod counts;
mod decode;
mod effects;
mod error;
mod lag;
mod log_fits;
mod lost_commits;
mod member;
pub mod options;
mod owner;
mod pauses;
pub mod replay;
mod service;
mod shared;
mod start;
mod states;
pub mod status;
mod telemetry;
#[cfg(test)]
mod testing;
mod undecodable_limit;
mod unreadable;
mod verdict;
pub mod verify;
mod worker;

pub use error::Error;
pub use log_fits::log_fits;
pub use options::Options;
pub use replay::replay;
pub use service::Service;
pub use status::{Membership, PartitionState, StatusHandle, StopReason};
pub use undecodable_limit::UndecodableLimit;
pub use verify::verify;

/// An error with what it came from, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
