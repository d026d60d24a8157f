//! The sessions service: opens sessions, binds lifetimes, hands out resume bodies (DESIGN 4 "Opening", "Binding"; 7).
//!
//! It writes to the log and nowhere else: that a session is open or erased, that a lifetime is bound or ended. What
//! came of it is read back from the hot tail, once the persister has applied it. It never hands out a stale, partial or
//! foreign body: it waits for the persister to pass the partition's end, the range of a body is fixed by the bind, and
//! whatever does not fit together is an error.
//!
//! | module | decision |
//! |---|---|
//! | [`options`] | what a deployment can set |
//! | [`service`] | the service's life: construction, admission, shutdown |
//! | `core` | what all calls share |
//! | `rpc` | the gRPC surface, one file for each family of calls; thin |
//! | `open` | opening a session |
//! | `bind`, `bind_decision` | binding a lifetime; the decision is pure |
//! | `stop` | ending a lifetime |
//! | `erase` | erasing a session |
//! | `barrier`, `publish`, `poll` | waiting for the persister, publishing a record and learning what became of it |
//! | `sequence` | whether parts come complete and in order; pure |
//! | `body`, `chunks`, `outlet` | reading parts in pages, cutting them into messages, handing those to a receiver |
//! | `start`, `export`, `tail` | the three kinds of streams |
//! | `list` | listing and describing sessions, page tokens |
//! | `grant` | lifetime grants and their renewal |
//! | `validate` | what a request may say; pure |
//! | `error` | what can go wrong, and what the caller is told about it |

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod barrier;
mod bind;
mod bind_decision;
mod body;
mod chunks;
mod clock;
mod core;
mod erase;
mod error;
mod export;
mod failpoint;
#[cfg(test)]
mod fixtures;
mod grant;
mod list;
mod metrics;
mod open;
pub mod options;
mod outlet;
mod poll;
mod publish;
mod rpc;
mod sequence;
pub mod service;
mod start;
mod stop;
mod tail;
mod validate;

pub use error::Error;
pub use options::Options;
pub use rpc::Sessions;
pub use service::Service;
