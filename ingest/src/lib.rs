//! The relay's server half: checks the lifetime token, admits or refuses, publishes, acknowledges (DESIGN 4).
//!
//! An acknowledged entry is durable: in the replicated log (`LOG`), or in the hot tail (`STORE`). The cache of a lifetime
//! only ever admits; a refusal is decided from the store.
//!
//! | module | decision |
//! |---|---|
//! | `options` | what can be configured |
//! | `service` | the gRPC services, and their start and end |
//! | `auth`, `validate` | who calls, and what a well-formed request is |
//! | `admission` | whether an entry may be published; pure |
//! | `facts` | what a read of the store says by itself; pure |
//! | `server_runs` | whether the store may have lost binds; pure |
//! | `ack` | what may be acknowledged, and in which order; pure |
//! | `lane`, `lanes` | what this relay remembers of a lifetime, and of how many |
//! | `commit`, `barrier`, `store_reads` | admission and repeats, with the reads that they need |
//! | `publish`, `budget` | how a part becomes a record, and how many may be on their way |
//! | `unary`, `parts_stream` | the two ways in |
//! | `board`, `watcher` | reading fences and progress for everybody who waits |
//! | `refusals`, `metrics` | the words and the numbers |

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod ack;
mod admission;
mod auth;
mod barrier;
mod board;
mod budget;
mod commit;
mod facts;
mod ingest;
mod lane;
mod lanes;
mod metrics;
mod options;
mod parts_stream;
mod publish;
mod refusals;
mod server_runs;
mod service;
mod store_reads;
mod unary;
mod validate;
mod watcher;

pub use options::Options;
pub use service::{AgentGateway, Relay, Service};

/// What can stop the service. A request's failure is a status and never one of these.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value makes no sense.
    #[error("ingest option {option}: {problem}")]
    InvalidOption {
        /// The option.
        option: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The task that reads the fences died.
    #[error("the fence watcher died: {reason}")]
    WatcherDied {
        /// What the runtime said.
        reason: String,
    },
    /// The shutdown did not wait any longer. What was acknowledged is durable; the writers send the rest again.
    #[error("shut down with {unacked_entries} unacknowledged entries and {open_calls} open calls")]
    DrainTimedOut {
        /// Entries that were published and not acknowledged.
        unacked_entries: usize,
        /// Calls that were still open.
        open_calls: usize,
    },
}
