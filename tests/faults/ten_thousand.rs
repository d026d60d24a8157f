//! Ten thousand entries while persisters die between the COMMIT of a batch and the commit of its offset.

use std::time::Duration;

use bytes::Bytes;
use rand::Rng as _;
use rand::rngs::StdRng;
use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinHandle;
use wakelog_proto::v1::AckLevel;

use crate::frozen_persister::is_stopped;
use crate::support::load::Loaded;
use crate::support::native::{Kind, NativeStack};
use crate::support::seed::{self, Entry};
use crate::{bodies_are_right, stops_and_verifies};

const SESSIONS: u64 = 50;
const ENTRIES: u64 = 200;

/// How often a persister dies, at least.
const DEATHS: usize = 5;

/// Invariants exactly-once-fold, acked-is-durable: exactly as many rows as entries, however often a batch is committed and its
/// offset is not.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_of_ten_thousand_entries_while_persisters_die_behind_a_commit() {
    for seed in seed::seeds(1) {
        eprintln!("seed {seed}: WAKELOG_TEST_SEED={seed} replays it");
        let mut rng = seed::rng(seed);
        let mut stack = NativeStack::prepare().await;
        stack.up().await;
        let connection = stack.connect().await;
        let mut writers = Vec::new();
        for number in 0..SESSIONS {
            let level = match number % 2 {
                0 => AckLevel::Log,
                _ => AckLevel::Store,
            };
            let name = format!("ten-thousand-{seed}-{number}");
            writers.push(Loaded::open(&connection, &name, level).await);
        }
        for number in 0..2 {
            assert!(stack.stop(Kind::Persist, number).success());
            stops_behind_a_commit(&mut stack, number, &mut rng);
            stack.spawn(Kind::Persist, number);
        }
        let writers: Vec<_> = writers
            .into_iter()
            .map(|session| tokio::spawn(write(session)))
            .collect();
        let deaths = churn(&mut stack, &writers, &mut rng).await;
        let mut sessions = Vec::new();
        for writer in writers {
            sessions.push(writer.await.expect("a writer ends well"));
        }
        let context = format!("seed {seed}, {deaths} deaths");
        assert!(deaths >= DEATHS, "{context}: too few to show anything");
        bodies_are_right(&stack, &sessions, &context).await;
        counts_are_right(&stack, &context).await;
        stops_and_verifies(&mut stack, &context);
    }
}

/// After a seeded number of batches its process stops with a batch in the store of which nobody was told.
fn stops_behind_a_commit(stack: &mut NativeStack, number: usize, rng: &mut StdRng) {
    let place = format!("persister::after_commit:{}", rng.random_range(10..30));
    stack.set_of(Kind::Persist, number, "WAKELOG_TEST_FREEZE", &place);
}

/// Kills persisters that have come to that place, and starts them again to come there once more, until every writer is through.
async fn churn(stack: &mut NativeStack, writers: &[JoinHandle<Loaded>], rng: &mut StdRng) -> usize {
    let mut deaths = 0;
    while !writers.iter().all(JoinHandle::is_finished) {
        for number in 0..2 {
            if !is_stopped(stack.pid(Kind::Persist, number)) {
                continue;
            }
            stack.kill(Kind::Persist, number);
            deaths += 1;
            match deaths < DEATHS {
                true => stops_behind_a_commit(stack, number, rng),
                // Enough: the rest goes through.
                false => stack.set_of(
                    Kind::Persist,
                    number,
                    "WAKELOG_TEST_FREEZE",
                    "persister::after_commit:0",
                ),
            }
            // Not waited for: it may have stopped again before it is ready.
            stack.spawn(Kind::Persist, number);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    deaths
}

async fn write(mut session: Loaded) -> Loaded {
    for number in 1..=ENTRIES {
        let bytes = Bytes::from(format!(
            "{{\"n\":{number},\"session\":\"{}\"}}\n",
            session.lifetime.session_id
        ));
        let checkpoint = false;
        session.send(Entry { bytes, checkpoint }).await;
        if number % 4 == 0 {
            session.drain().await;
        }
    }
    session
}

async fn counts_are_right(stack: &NativeStack, context: &str) {
    let mut database = PgConnection::connect(&stack.database_url())
        .await
        .expect("a connection");
    let (rows, entries, sessions): (i64, i64, i64) = sqlx::query_as(
        "SELECT count(*), count(DISTINCT (session_id, entry_seq)), count(DISTINCT session_id)
         FROM agent_session_transcript_entries",
    )
    .fetch_one(&mut database)
    .await
    .expect("counts");
    let all = (SESSIONS * ENTRIES) as i64;
    assert_eq!(
        (rows, entries, sessions),
        (all, all, SESSIONS as i64),
        "{context}: rows, entries, sessions"
    );
}
