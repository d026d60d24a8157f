//! The native stack: Apache Kafka, PostgreSQL and an S3 server as processes of their own, or as containers, and every service as
//! a process.
//!
//! | module | what it gives |
//! |---|---|
//! | [`engines`] | one set of engines for a test binary, as processes or as containers, or a set of a test's own that it may mistreat |
//! | [`kafka`] | a cluster of one or three brokers: started, killed, frozen, cut off one by one; what its topics hold |
//! | [`broker`] | one broker: its addresses, its settings, its process |
//! | [`links`] | links between processes that can be cut |
//! | [`postgres`] | a server: started, killed, frozen; databases |
//! | [`pg_proxy`] | a proxy before the database: loses answers of COMMITs, cuts clients off |
//! | [`s3`] | an S3 server: started, killed, frozen; what its bucket holds |
//! | [`s3_proxy`] | a proxy before the S3 server: slow, refusing, losing answers, cutting bodies |
//! | [`server`] | the process of an engine |
//! | [`stall`] | a proxy before the database that goes silent in the middle of a statement's rows |
//! | [`fleet`] | the services: several of each, started, killed, frozen one by one |

pub mod broker;
pub mod engines;
pub mod fleet;
pub mod kafka;
pub mod links;
pub mod pg_proxy;
pub mod postgres;
pub mod s3;
pub mod s3_proxy;
pub mod server;
pub mod stall;

pub use engines::Engines;
pub use fleet::{Kind, NativeStack};

use std::path::PathBuf;
use std::process::Command;

/// A script of the project that runs an engine in the foreground.
fn script(name: &str) -> Command {
    Command::new(in_scripts("engines").join(name))
}

/// The script that runs an engine in a container, in the foreground.
fn container(engine: &str) -> Command {
    let mut command = Command::new(in_scripts("containers").join("run.sh"));
    command.arg(engine);
    command
}

fn in_scripts(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../scripts")
        .join(folder)
}

/// Starts on a thread that lasts as long as this process: what dies with the thread that started it would otherwise die
/// with the first test.
fn on_a_lasting_thread<T: Send + 'static>(start: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        sender.send(start()).ok();
        loop {
            std::thread::park();
        }
    });
    receiver.recv().expect("it starts")
}
