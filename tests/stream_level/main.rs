//! The stream-level suite: the real binary, real engines, tests that talk to it as agents and users do.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod lifetimes;
mod load;
mod process_crash;
mod service_death;
