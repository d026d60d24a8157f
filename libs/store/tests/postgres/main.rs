//! The store against a real PostgreSQL. What can run on a pool of one connection runs on both kinds of pool: there,
//! code that takes a second connection while it holds one would not end.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

/// Runs each test on a pool of several connections and on a pool of one.
macro_rules! on_both_pools {
    ($($name:ident),+ $(,)?) => {
        mod pool {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::support::Database::empty().await).await;
            })+
        }
        mod single_connection {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::support::Database::empty_single().await).await;
            })+
        }
    };
}

mod archive;
mod batches;
mod claims;
mod commits;
mod entries;
mod erasure;
mod lifetimes;
mod quarantine;
mod reachability;
mod rebuild;
mod schema;
mod sessions;
mod transactions;
