//! Wakelog's Postgres side: the hot tail, the progress of each partition, the archive's manifest, and the schema they
//! live in.
//!
//! Runs unchanged on PostgreSQL 15 or newer and on an embedded single-connection Postgres: no `LISTEN`, no second
//! connection while one is held, no cursor between calls.
//!
//! | module | decision |
//! |---|---|
//! | [`options`] | how the pool is built, and the bounds of every wait |
//! | [`error`] | what can go wrong, and whether the effect can have happened |
//! | `store` | the handle, and taking a connection |
//! | `gate` | who may connect to a store that is being built again, and when a rebuild may begin |
//! | `schema` | which migrations are embedded, and whether the database has exactly those |
//! | `rights` | whether the user may do what the services do |
//! | `server_run` | whether the server is still the one that it was |
//! | `settings` | whether the server keeps what it has confirmed |
//! | `pins` | the partition of a session, and the generation that is about to be bound |
//! | `progress` | claims of a partition: a new epoch fences the old owner |
//! | `batch` | one batch of a partition, exactly once |
//! | [`rows`] | what goes in and comes out |
//! | `sessions`, `lifetimes`, `entries` | reads for ingest and the reconstructor |
//! | [`archive`] | what is due, what is staged, the manifest, flushes, states and erasures |
//! | [`rebuild`] | building an empty store again, from the topic or from the archive |
//! | `audit` | reads for verification |
//! | `numbers` | u64 of the protocol against bigint of the database |

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod archive;
mod audit;
mod batch;
mod entries;
pub mod error;
mod gate;
mod lifetimes;
mod numbers;
pub mod options;
mod pins;
mod progress;
pub mod rebuild;
mod rights;
pub mod rows;
mod schema;
mod server_run;
mod sessions;
mod settings;
mod store;

pub use archive::rows::{
    ArchivedObject, Coverage, CoverageNow, DueBy, DueErasure, DuePage, Flush, Flushed, HotTail, Recorded,
    Refusal, SegmentKind, SegmentRow, SnapshotCause, SnapshotRow, SnapshotSource, Staged, StagedObject,
    Staging, UnfinishedEntry,
};
pub use audit::SessionColumns;
pub use batch::{Batch, LoadedSession};
pub use error::{Effect, Error};
pub use options::Options;
pub use progress::{Claim, Progress};
pub use rebuild::rows::{Rebuild, RebuildPlan, RebuildStart, RestoredSession, UnknownSession};
pub use rebuild::{RebuildLock, RebuildTarget};
pub use rights::Use;
pub use rows::{
    AccessWrite, BatchWrites, ErasureStanding, LifetimeCursor, LifetimeRow, LifetimeWrite, ListQuery,
    PartRow, QuarantinedRecord, SessionRow, SessionWrite,
};
pub use settings::Weakness;
pub use store::Store;
