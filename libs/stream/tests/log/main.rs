//! The crate against a broker: the embedded one, or the one that `WAKELOG_TEST_BROKERS` names.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod group;
mod publish;
mod support;
