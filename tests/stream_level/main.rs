//! The stream-level suite: the real binary, real engines, tests that talk to it as agents and users do.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

/// Real Kafka and PostgreSQL, and every service as a process of its own, two of each.
pub(crate) const RUNS_ON_NATIVE: bool = true;

mod archive;
mod bad_input;
mod erase;
mod lifetimes;
mod poisoned_topic;
mod process_crash;
mod readers;
mod service_death;
