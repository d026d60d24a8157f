//! What a user meets: every command as a process of its own, its exit code, its text, its JSON and its files.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

/// What a user meets first: everything in one process.
pub(crate) const RUNS_ON_NATIVE: bool = false;

/// A real PostgreSQL, as the store's own tests start it.
#[path = "../../libs/store/tests/support/mod.rs"]
mod postgres;

mod clients;
mod configuration;
mod data_dir;
mod erase;
mod history;
mod own_engines;
mod process;
mod ran;
mod replay;
mod round_trip;
mod schema;
mod secrets;
mod segments;
mod sessions;
mod verify;
