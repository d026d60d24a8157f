//! `kill -9` of the whole stack under load: nothing acknowledged is lost, doubled or altered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::Rng as _;
use wakelog_proto::v1::AckLevel;

use crate::support::load::Loaded;
use crate::support::stack::Stack;
use crate::support::{PATIENCE, seed, within};

const SESSIONS: u64 = 4;
const ENTRIES: u64 = 60;

/// Invariants acked-is-durable, exactly-once-fold, no-silent-gap, byte-exact. The kill comes after a seeded number of
/// entries were handed over, whatever the clock says.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_over_kill_9_of_everything() {
    for seed in seed::seeds(5) {
        eprintln!("seed {seed}: WAKELOG_TEST_SEED={seed} replays it");
        let mut stack = Stack::start().await;
        let sent = Arc::new(AtomicU64::new(0));
        let kill_after = seed::rng(seed).random_range(1..SESSIONS * ENTRIES);
        let mut sessions = Vec::new();
        for number in 0..SESSIONS {
            let level = if number % 2 == 0 {
                AckLevel::Log
            } else {
                AckLevel::Store
            };
            sessions.push(Loaded::open(&stack.connect().await, &format!("crash-{number}"), level).await);
        }
        let writers: Vec<_> = (0..SESSIONS)
            .zip(sessions)
            .map(|(number, mut session)| {
                let sent = sent.clone();
                tokio::spawn(async move {
                    let mut rng = seed::rng(seed * 1000 + number);
                    for entry in 1..=ENTRIES {
                        session.send(seed::entry(&mut rng, entry)).await;
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                    session.drain().await;
                    session
                })
            })
            .collect();
        within("the load before the kill", async {
            while sent.load(Ordering::Relaxed) < kill_after
                && writers.iter().any(|writer| !writer.is_finished())
            {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        })
        .await;
        stack.kill();
        stack.up().await;
        let mut sessions = Vec::new();
        for writer in writers {
            sessions.push(
                tokio::time::timeout(2 * PATIENCE, writer)
                    .await
                    .expect("a writer ends")
                    .expect("well"),
            );
        }
        let connection = stack.connect().await;
        for session in &sessions {
            session.check(&connection, &format!("seed {seed}")).await;
        }
        assert!(
            stack.stop().success(),
            "a drained stop ends well\n{}",
            stack.log()
        );
        stack.verify();
    }
}
