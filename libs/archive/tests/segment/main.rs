//! Segments from the outside: what goes in comes out, byte for byte, or an error says why not.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod damage;
mod roundtrip;
mod support;
mod writing;
