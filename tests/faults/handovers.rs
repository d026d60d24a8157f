//! Partitions that go from one persister to another and back.

use std::time::{Duration, Instant};

use crate::ends_well;
use crate::frozen_persister::{owned, wait_until_both_own};
use crate::support::PATIENCE;
use crate::support::load::Load;
use crate::support::native::fleet::PARTITIONS;
use crate::support::native::{Kind, NativeStack};

/// How often a persister comes and goes in CI; `WAKELOG_TEST_HANDOVERS` says how often in a campaign.
const USUAL_ROUNDS: u64 = 15;

/// Invariants no-silent-gap, exactly-once-fold: nothing is dropped as a gap, however often partitions change hands.
#[tokio::test(flavor = "multi_thread")]
async fn no_silent_gap_when_partitions_go_back_and_forth() {
    let rounds = match std::env::var("WAKELOG_TEST_HANDOVERS") {
        Ok(rounds) => rounds.parse().expect("WAKELOG_TEST_HANDOVERS is a number"),
        Err(_) => USUAL_ROUNDS,
    };
    let mut stack = NativeStack::prepare().await;
    stack.up().await;
    wait_until_both_own(&stack).await;
    let connection = stack.connect().await;
    let load = Load::start(&connection, "handovers", 1, 6, Duration::from_millis(5)).await;
    for round in 0..rounds {
        let context = format!("round {round}");
        assert_no_gap(&stack, 1, &context).await;
        // A polite stop and a death in turn: the second leaves its partitions to the session time-out.
        if round % 8 == 7 {
            stack.kill(Kind::Persist, 1);
        } else {
            assert!(stack.stop(Kind::Persist, 1).success(), "{context}");
        }
        wait_until_owns_all(&stack, &context).await;
        load.advance(20, &context).await;
        assert_no_gap(&stack, 0, &context).await;
        stack.start(Kind::Persist, 1).await;
        wait_until_both_own(&stack).await;
        load.advance(20, &context).await;
    }
    for number in 0..2 {
        assert_no_gap(&stack, number, "at the end").await;
    }
    ends_well(&mut stack, load, "after the handovers").await;
}

async fn wait_until_owns_all(stack: &NativeStack, context: &str) {
    let deadline = Instant::now() + PATIENCE;
    while owned(stack, 0).await < PARTITIONS as usize {
        assert!(
            Instant::now() < deadline,
            "{context}: nobody takes over\n{}",
            stack.log()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// No record came to the outcome `gap`: every writer here waits for its acks, and no relay has failed.
async fn assert_no_gap(stack: &NativeStack, number: usize, context: &str) {
    let page = crate::support::process::get(&stack.http(Kind::Persist, number), "/metrics")
        .await
        .expect("metrics");
    let gaps: Vec<&str> = page
        .lines()
        .filter(|line| {
            line.starts_with("wakelog_persister_records_total") && line.contains("outcome=\"gap\"")
        })
        .collect();
    assert!(
        gaps.iter().all(|line| line.ends_with(" 0")),
        "{context}: records were dropped as a gap: {gaps:?}"
    );
}
