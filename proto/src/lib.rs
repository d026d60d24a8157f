//! The wire contracts of Wakelog: package `wakelog.v1`, generated from `proto/wakelog/v1/*.proto`.
//!
//! | file | what it holds |
//! |---|---|
//! | `agent.proto` | what an agent emits |
//! | `archive.proto` | the index of an archived segment |
//! | `relay.proto` | the durable lane: unary commit, pipelined commit of parts |
//! | `sessions.proto` | sessions, lifetimes, resume bodies |
//! | `record.proto` | the values of the transcript topic |
//! | `fold_state.proto` | the fold's state of a session, as stored |
//! | `token.proto` | what a lifetime token says |
//! | `refusal.proto` | why a call was refused |
//!
//! With the feature `services` the gRPC clients and servers are generated too. `bytes` fields are
//! [`bytes::Bytes`] and maps are sorted, so the same message always encodes to the same bytes.

/// Package `wakelog.v1`.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    reason = "generated; the .proto files are documented"
)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/wakelog.v1.rs"));
}
