//! The fold of Wakelog: what a record of the transcript topic does to the state of its session.
//!
//! [`fold`] is a pure function: no I/O, no clock, no randomness. It is the only place where sequence, duplicates,
//! gaps, fences and supersession are decided (DESIGN 4). The same log gives the same states, to the byte.
//!
//! | module | decision |
//! |---|---|
//! | `fold` | the order of the decisions, then one module for each kind of record |
//! | `outcome` | what a record can come to |
//! | `malformed` | what can be wrong with a record by itself |
//! | `validate` | reading a record's fields, without any state |
//! | `state` | what is remembered of a session |
//! | `lifetime` | what is remembered of its current lifetime |
//! | `codec` | the state as stored bytes, and back |
//!
//! Nothing but an applied record changes the state, with one exception: a conflict makes the lifetime *failed*.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod codec;
mod error;
mod fold;
mod lifetime;
mod malformed;
mod outcome;
mod state;
mod validate;

pub use error::Error;
pub use fold::{Context, fold};
pub use lifetime::{Lifetime, Remembered};
pub use malformed::Malformed;
pub use outcome::{Change, ConflictKind, Outcome, Reason};
pub use state::{Opened, SessionState};
