//! Wakelog's three engines inside one process, for `wakelog up`, the demo and quick tests.
//!
//! | engine | what it is | spoken from outside | folder |
//! |---|---|---|---|
//! | log | Tansu broker with SQLite storage | Kafka protocol | `log/` |
//! | hot tail | PGlite (PostgreSQL 17 as WebAssembly) | Postgres wire protocol, one connection at a time | `hot-tail/` |
//! | archive | `s3s` file-system server | S3 | `archive/` |
//!
//! All listen on loopback only. None of them syncs to disk on every commit: what they acknowledged survives the end of
//! the process (`kill -9` too), not a power cut.
//!
//! Map: [`Engines`] starts and stops them (`engines.rs`); [`DataDir`] is the locked, versioned folder (`data_dir.rs`);
//! `log.rs`, `hot_tail.rs`, `archive.rs` hold one engine each; `gate.rs` stands before PGlite and lets one connection
//! through at a time; `watch.rs` notices an engine that ends by itself; every failure is an [`Error`].
//!
//! The engines log through `tracing`, some with whole requests at debug level: a subscriber takes [`QUIET_TARGETS`]
//! into its filter.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod archive;
mod data_dir;
mod engines;
mod error;
mod gate;
mod hot_tail;
mod log;
mod watch;

pub use archive::ArchiveAddress;
pub use data_dir::{DATA_DIR_VERSION, DataDir, NEEDED_FREE_BYTES};
pub use engines::{Engines, Options};
pub use error::{Engine, Error};

/// `tracing` directives for a subscriber of a process that holds the engines: their debug levels print record and
/// request bytes, and their error levels print what is usual here (a client that went away).
pub const QUIET_TARGETS: &str = "tansu_broker=off,tansu_storage=off,tansu_service=off,tansu_sans_io=off,\
libsql=off,rama_core=off,s3s=warn,s3s_fs=warn,pglite_oxide=warn,wasmer_wasix=off,wasmer=off,virtual_fs=off,hyper=warn";
