//! History moves to the archive while sessions are written and read: PUT before prune, and a body that is whole at every moment.

use std::time::{Duration, Instant};

use bytes::Bytes;
use wakelog_proto::v1::AckLevel;

use crate::support::PATIENCE;
use crate::support::load::Loaded;
use crate::support::process::sum_of;
use crate::support::seed::Entry;
use crate::support::session::stop;
use crate::support::stack::Stack;

/// The sum of a metric over everything that runs, of the series whose labels contain `label`.
pub(crate) async fn total(stack: &Stack, name: &str, label: &str) -> f64 {
    sum_of(&stack.metrics().await, name, label)
}

/// Waits until that sum is so much.
pub(crate) async fn wait_for(stack: &Stack, name: &str, label: &str, at_least: f64) {
    let deadline = Instant::now() + PATIENCE;
    while total(stack, name, label).await < at_least {
        assert!(
            Instant::now() < deadline,
            "{name}{{{label}}} stays at {}\n{}",
            total(stack, name, label).await,
            stack.log()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) const SEGMENTS: &str = "wakelog_archiver_segments_total";
const FROM_ARCHIVE: &str = "wakelog_reconstructor_archived_bytes_total";

fn delta(number: usize, length: usize) -> Entry {
    let mut bytes = format!("{{\"delta\":{number}}} ").into_bytes();
    bytes.resize(length.max(bytes.len()), b'x');
    bytes.push(b'\n');
    Entry {
        bytes: Bytes::from(bytes),
        checkpoint: false,
    }
}

fn checkpoint(name: &str, length: usize) -> Entry {
    let mut bytes = format!("{{\"checkpoint\":\"{name}\"}} ").into_bytes();
    bytes.resize(length.max(bytes.len()), 0);
    Entry {
        bytes: Bytes::from(bytes),
        checkpoint: true,
    }
}

/// Invariants put-before-prune, archived-is-complete: what a checkpoint superseded moves, nothing else does, and a resume does
/// not need it. An end of the session archives the rest and prunes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn put_before_prune_of_what_a_checkpoint_superseded() {
    let mut stack = Stack::start().await;
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "superseded", AckLevel::Store).await;
    for number in 0..30 {
        session.send(delta(number, 1_000)).await;
    }
    session.drain().await;
    session.check(&connection, "before the checkpoint").await;
    assert_eq!(total(&stack, SEGMENTS, "superseded").await, 0.0);

    let mut session = Loaded::attach_again(&connection, session).await;
    session.send(checkpoint("two parts", 600_000)).await;
    for number in 30..35 {
        session.send(delta(number, 1_000)).await;
    }
    session.drain().await;
    wait_for(&stack, SEGMENTS, "superseded", 1.0).await;
    session.check(&connection, "after the flush").await;
    assert_eq!(
        total(&stack, FROM_ARCHIVE, "").await,
        0.0,
        "a normal resume asks no archive"
    );

    let mut session = Loaded::attach_again(&connection, session).await;
    session.send(delta(35, 1_000)).await;
    session.drain().await;
    stop(&connection, &session.lifetime).await.expect("an end");
    wait_for(&stack, SEGMENTS, "session_end", 1.0).await;
    session.check(&connection, "after the end").await;
    assert_eq!(
        total(&stack, FROM_ARCHIVE, "").await,
        0.0,
        "an end prunes nothing"
    );
    assert!(stack.stop().success());
    stack.verify();
}

/// Invariants put-before-prune, byte-exact: an agent that only appends has its oldest deltas moved, and its body is put
/// together again; a later checkpoint makes them superseded, and the archive is not asked any more.
#[tokio::test(flavor = "multi_thread")]
async fn byte_exact_when_the_safety_valve_has_opened() {
    let mut stack = Stack::prepare().await;
    stack.set_valve_bytes(50_000);
    stack.up().await;
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "valve", AckLevel::Store).await;
    session.send(checkpoint("first", 2_000)).await;
    for number in 0..150 {
        session.send(delta(number, 1_000)).await;
        if number % 30 == 29 {
            session.drain().await;
        }
    }
    session.drain().await;
    wait_for(&stack, SEGMENTS, "safety_valve", 1.0).await;
    // 100 KB have to go, and no more than half of the cap is moved for each time that it was exceeded.
    let puts = total(&stack, SEGMENTS, "safety_valve").await;
    assert!(puts <= 6.0, "{puts} objects for 150 entries");
    session.check(&connection, "with segments").await;
    let spliced = total(&stack, FROM_ARCHIVE, "").await;
    assert!(
        spliced >= 2.0 * 75_000.0,
        "{spliced} bytes of two bodies came from the archive"
    );

    let mut session = Loaded::attach_again(&connection, session).await;
    session.send(checkpoint("second", 3_000)).await;
    session.send(delta(150, 1_000)).await;
    session.drain().await;
    wait_for(&stack, SEGMENTS, "superseded", 1.0).await;
    session.check(&connection, "after the checkpoint").await;
    assert_eq!(
        total(&stack, FROM_ARCHIVE, "").await,
        spliced,
        "what was superseded is not read"
    );
    assert!(stack.stop().success());
    stack.verify();
}

/// Invariants put-before-prune, archived-is-complete: the archiver dies once at each step of its work, on whatever session
/// comes first; in the end everything is where it belongs, once.
#[tokio::test(flavor = "multi_thread")]
async fn archived_is_complete_over_a_death_at_every_step() {
    let steps = [
        "archiver::before_stage",
        "archiver::after_stage",
        "archive::before_put",
        "archive::after_put",
        "archive::after_verify",
        "archiver::after_put",
        "store::flush_after_delete",
        "store::flush_before_commit",
        "store::flush_after_commit",
        "archiver::before_state",
        "archiver::after_state",
    ];
    // The first PUT is that of the trial object at the start.
    let die_once = |step: &&str| match step.starts_with("archive::") {
        true => format!("{step}=1*off->1*return->off"),
        false => format!("{step}=1*return->off"),
    };
    let failpoints: Vec<String> = steps.iter().map(die_once).collect();
    let mut stack = Stack::start_with(&failpoints.join(";")).await;
    let connection = stack.connect().await;
    let mut sessions = Vec::new();
    for number in 0..12 {
        let mut session = Loaded::open(&connection, &format!("steps-{number}"), AckLevel::Store).await;
        for entry in 0..10 {
            session.send(delta(entry, 700)).await;
        }
        session.send(checkpoint("the only one", 5_000)).await;
        session.send(delta(10, 700)).await;
        session.drain().await;
        stop(&connection, &session.lifetime).await.expect("an end");
        sessions.push(session);
    }
    wait_for(&stack, SEGMENTS, "superseded", sessions.len() as f64).await;
    wait_for(
        &stack,
        "wakelog_archiver_snapshots_total",
        "",
        sessions.len() as f64,
    )
    .await;
    let failed = total(&stack, "wakelog_archiver_jobs_total", "failed").await;
    assert!(
        failed >= 6.0,
        "only {failed} jobs failed: the steps were not reached"
    );
    for session in &sessions {
        session.check(&connection, "after the deaths").await;
    }
    assert_eq!(total(&stack, FROM_ARCHIVE, "").await, 0.0);
    assert!(stack.stop().success());
    stack.verify();
}
