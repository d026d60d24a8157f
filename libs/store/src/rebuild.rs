//! Building an empty store again: from the topic alone, or from the archive's states and the rest of the topic.
//!
//! | module | decision |
//! |---|---|
//! | [`rows`] | what goes in and comes out |
//! | `lock` | who may build the store: one process, and nobody uses it meanwhile |
//! | `standing` | how far a rebuild has come, and that it starts on an empty store |
//! | `sessions` | a session as a state of the archive has it, and what is known of an erased one |
//! | `pieces` | its unfinished parts and its segments |
//! | `reads` | what the rest of the rebuild asks |
//!
//! A session's row comes last: what has a row is restored as a whole. States go in until the rebuild is marked as loaded, and
//! never after that, so that none of them can replace what was folded since.

mod lock;
mod pieces;
mod reads;
pub mod rows;
mod sessions;
mod standing;

pub use lock::{RebuildLock, RebuildTarget};
