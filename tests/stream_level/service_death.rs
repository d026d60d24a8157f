//! A service that dies at a named step, by counter: nothing acknowledged is lost, doubled or altered, and everything goes
//! on by itself.

use wakelog_proto::v1::AckLevel;

use crate::load::Loaded;
use crate::support::seed;
use crate::support::stack::Stack;

/// Every step at which a service can die while entries are written.
const WRITE_STEPS: &[&str] = &[
    "persister::after_claim",
    "persister::before_batch",
    "persister::after_fold",
    "persister::before_write",
    "persister::before_commit",
    "persister::after_commit",
    "store::before_begin",
    "store::after_lock",
    "store::after_write",
    "store::before_commit",
    "store::after_commit",
    "stream::publish",
    "stream::publish_after",
    "ingest::before_publish",
    "ingest::after_publish",
    "ingest::before_ack",
    "ingest::watcher",
];

/// Invariants acked-is-durable, exactly-once-fold, no-silent-gap, byte-exact, at each step and after a seeded number of
/// passes through it.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_over_a_death_at_every_step_of_writing() {
    for seed in seed::seeds(1) {
        for (number, step) in WRITE_STEPS.iter().enumerate() {
            let passes = (seed * 7 + number as u64 * 3) % 11;
            let failpoint = format!("{step}={passes}*off->2*return->off");
            eprintln!("seed {seed}, failpoint {failpoint}");
            let mut stack = Stack::start_with(&failpoint).await;
            let connection = stack.connect().await;
            let mut logged = Loaded::open(&connection, "logged", AckLevel::Log).await;
            let mut stored = Loaded::open(&connection, "stored", AckLevel::Store).await;
            tokio::join!(logged.send_seeded(seed, 40), stored.send_seeded(seed + 1, 40));
            tokio::join!(logged.drain(), stored.drain());
            logged.check(&connection, &failpoint).await;
            stored.check(&connection, &failpoint).await;
            assert!(stack.stop().success(), "{failpoint}: a drained stop ends well\n{}", stack.log());
            stack.verify();
        }
    }
}
