//! Tests of the fold through its public face.
//!
//! | module | what it holds the fold to |
//! |---|---|
//! | `table` | DESIGN 4's table of parts, row by row |
//! | `lifetimes` | binds, ends, what a bind fixes |
//! | `sessions` | opening, access, erasing, partitions |
//! | `malformed` | every field that can be wrong, at its limits |
//! | `numbers` | the ends of the number ranges |
//! | `properties` | the invariants, over random worlds, against an oracle that shares no code with the fold |
//! | `replay` | the same log gives the same states and rows, from the start and from any stored state |
//! | `fuzz` | any record, any bytes |

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod bench;
mod fuzz;
mod lifetimes;
mod malformed;
mod numbers;
mod properties;
mod records;
mod replay;
mod sessions;
mod table;
mod world;
