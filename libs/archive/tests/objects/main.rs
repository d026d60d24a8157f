//! The object store against an S3 server, and against one that fails.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod checks;
mod gateway;
mod gets;
mod lists;
mod multipart;
mod puts;
mod segments;
mod workload;
