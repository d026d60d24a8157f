//! The archiver: moves history out of the hot tail and into the object store, PUT before prune; archives sessions as a whole,
//! so that they can be rebuilt; deletes what was erased.
//!
//! | module | decision |
//! |---|---|
//! | [`options`] | how it is set up |
//! | `service` | the service: what is due is done, a few sessions at a time |
//! | `share`, `wake` | which partitions it looks after, and what a record of them wakes |
//! | `sweep` | looking at all sessions in turn, whatever was woken |
//! | `queue`, `job` | what is done next, and how long after a failure; pure |
//! | `tail`, `due` | what of a hot tail is due; the decision is pure |
//! | `gather`, `lifetimes` | reading rows into a segment |
//! | `moving` | a segment's way: staged, put, verified, recorded, pruned |
//! | `snapshot`, `uncovered` | archiving a session as a whole |
//! | `coverage` | how far the states in the archive reach, and whether the bucket is the one that they are in |
//! | `erasure` | deleting what the archive holds of an erased session |
//! | [`inspect`] | the archive as a whole: what is missing or damaged, what nothing records |
//! | [`status`], `telemetry` | what it is doing, what is counted |
//!
//! # Put before prune
//!
//! A row leaves the hot tail only in the transaction that records the verified object which holds it. What is due is read
//! from the database; the topic only wakes. Two archivers may work on one session: each PUT names its content, and the
//! transaction deletes exactly the rows that the object was made of, or nothing.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod coverage;
mod due;
mod erasure;
mod error;
mod failpoint;
mod gather;
pub mod inspect;
mod job;
mod lifetimes;
mod moving;
pub mod options;
mod queue;
mod service;
mod share;
mod shared;
mod snapshot;
pub mod status;
mod sweep;
mod tail;
mod telemetry;
mod uncovered;
mod wake;

pub use coverage::{begin_anew, check_bucket};
pub use error::Error;
pub use options::{Options, Share};
pub use service::Service;
pub use status::StatusHandle;

/// An error with what it came from, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    text
}
