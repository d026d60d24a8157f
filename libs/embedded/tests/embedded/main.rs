//! The embedded engines from outside, in one binary: linking the engines takes its time.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod archive;
mod common;
mod data_dir;
mod hot_tail;
mod killed;
mod log;
mod one_record;
