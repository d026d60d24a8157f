//! Tests of the model: what every part of Wakelog must agree on, to the byte.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod digests;
mod encodings;
mod ids;
mod parts;

use proptest::test_runner::Config;

/// `cases` unless the environment asks for another number.
fn config(cases: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    Config {
        cases: asked.unwrap_or(cases),
        failure_persistence: None,
        ..Config::default()
    }
}
