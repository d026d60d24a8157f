//! A part of the stream-level suite, unchanged, on the embedded stack: `wakelog up`, everything in one process.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

/// The demo's engines.
pub(crate) const RUNS_ON_NATIVE: bool = false;

#[path = "../stream_level/archive.rs"]
mod archive;
#[path = "../stream_level/erase.rs"]
mod erase;
#[path = "../stream_level/lifetimes.rs"]
mod lifetimes;
#[path = "../stream_level/process_crash.rs"]
mod process_crash;
