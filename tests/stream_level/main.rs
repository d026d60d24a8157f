//! The stream-level suite: the real binary, real engines, tests that talk to it as agents and users do.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

mod bad_input;
mod lifetimes;
mod load;
mod poisoned_topic;
mod process_crash;
mod service_death;
