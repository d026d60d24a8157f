//! What the stream-level tests stand on: a stack that runs the real binary in processes of its own, and sessions whose
//! writers remember what was acknowledged.
//!
//! | module | what it gives |
//! |---|---|
//! | [`stack`] | the stack of a stream-level test, of whichever kind |
//! | [`embedded`] | `wakelog up` on a folder of its own: started, killed, restarted |
//! | [`native`] | Apache Kafka, PostgreSQL and every service as processes of their own |
//! | [`process`] | processes, signals, ports, pages |
//! | [`bystander`] | a session that must go on as if nothing had happened |
//! | [`oracle`] | what a body must be, from what was sent and what was acknowledged alone |
//! | [`mount`] | a small file system of a test's own |
//! | [`load`] | writers under load, each with its oracle |
//! | [`questions`] | everything that a caller can ask about a session |
//! | [`refusal`] | whether an answer is the refusal that it must be |
//! | [`relay`] | calls of the durable lane that no client would make |
//! | [`session`] | the calls that the tests make, with bounds |
//! | [`subject`] | a session that is mistreated, with what its body must be |
//! | [`seed`] | random entries that can be drawn again |

#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub mod bystander;
pub mod embedded;
pub mod load;
pub mod mount;
pub mod native;
pub mod oracle;
pub mod process;
pub mod questions;
pub mod refusal;
pub mod relay;
pub mod seed;
pub mod session;
pub mod stack;
pub mod subject;

use std::time::Duration;

/// How long anything may take before the test says what it waited for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Bounds a wait, and names it.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what} took longer than {PATIENCE:?}"),
    }
}
