//! A persister that freezes in the middle of a batch, past its session time-out, and wakes after its successor has worked.

use std::time::{Duration, Instant};

use rand::RngCore as _;
use wakelog_proto::v1::AckLevel;

use crate::support::load::{Load, Loaded};
use crate::support::native::fleet::PARTITIONS;
use crate::support::native::stall::Stall;
use crate::support::native::{Kind, NativeStack};
use crate::support::process::get;
use crate::support::session::open_on;
use crate::support::{PATIENCE, seed, within};
use crate::{bodies_are_right, ends_well};

/// Where it freezes: before the first statement, between statements, with rows written, before COMMIT, after it.
const STEPS: &[&str] = &[
    "store::before_begin",
    "store::after_lock",
    "persister::after_fold",
    "store::after_write",
    "store::before_commit",
    "store::after_commit",
];

/// Invariants exactly-once-fold, acked-is-durable: the successor takes over without waiting for the frozen one longer than
/// the lock time-out, and what wakes up changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_over_a_persister_that_freezes_at_each_step() {
    for seed in seed::seeds(1) {
        for (number, step) in STEPS.iter().enumerate() {
            let pass = 3 + (seed * 5 + number as u64 * 3) % 11;
            let context = format!("seed {seed}, frozen at pass {pass} of {step}");
            eprintln!("{context}");
            let mut stack = NativeStack::prepare().await;
            stack.set_of(Kind::Persist, 0, "WAKELOG_TEST_FREEZE", &format!("{step}:{pass}"));
            stack.up().await;
            wait_until_both_own(&stack).await;
            let connection = stack.connect().await;
            let load = Load::start(&connection, "frozen", seed, 8, Duration::from_millis(5)).await;
            wait_until_stopped(stack.pid(Kind::Persist, 0), &context).await;
            wakes_too_late(&mut stack, &load, &context).await;
            ends_well(&mut stack, load, &context).await;
        }
    }
}

/// The same in the middle of sending rows: the server waits for the rest of a statement, which is no idle transaction and which
/// no time-out of a statement ends.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_over_a_persister_that_freezes_while_it_sends_rows() {
    let context = "frozen while it sends rows";
    let mut stack = NativeStack::prepare().await;
    let stall = Stall::in_a_request_of(100_000, stack.engines().postgres.port()).await;
    let through_stall = stack.engines().postgres.url_of(stall.port(), stack.topic());
    stack.set_of(Kind::Persist, 0, "WAKELOG_DATABASE_URL", &through_stall);
    stack.up().await;
    wait_until_both_own(&stack).await;
    let connection = stack.connect().await;
    let load = Load::start(&connection, "rows", 1, 8, Duration::from_millis(5)).await;
    let mut large = Vec::new();
    for partition in 0..PARTITIONS {
        let session = open_on(&connection, "large", partition).await;
        let mut session = Loaded::attach(&connection, &session, AckLevel::Log).await;
        let mut noise = vec![0; 400_000];
        seed::rng(partition as u64).fill_bytes(&mut noise);
        let bytes = noise.into();
        session
            .send(seed::Entry {
                bytes,
                checkpoint: true,
            })
            .await;
        session.drain().await;
        large.push(session);
    }
    within(context, stall.stalled()).await;
    stack.signal(Kind::Persist, 0, "STOP");
    wait_until_owns(&stack, 1, PARTITIONS as usize, context).await;
    stall.release();
    wakes_too_late(&mut stack, &load, context).await;
    bodies_are_right(&stack, &large, context).await;
    ends_well(&mut stack, load, context).await;
}

/// The frozen persister 0 is succeeded, wakes, and is of use again.
pub(crate) async fn wakes_too_late(stack: &mut NativeStack, load: &Load, context: &str) {
    wait_until_owns(stack, 1, PARTITIONS as usize, context).await;
    // A `STORE` ack on every partition: the successor has folded what the frozen one had in hand, and more.
    load.advance(200, context).await;
    let page = get(&stack.http(Kind::Persist, 1), "/metrics")
        .await
        .expect("metrics");
    let claims = sample(&page, "wakelog_store_claim_seconds_count");
    // The lock time-out is 2 s; a frozen transaction would end by itself after 5.
    let in_bounds = sample(&page, "wakelog_store_claim_seconds_bucket{le=\"5\"}");
    assert_eq!(claims, in_bounds, "{context}: a claim waited too long");
    assert!(claims >= f64::from(PARTITIONS), "{context}: {claims} claims");
    stack.signal(Kind::Persist, 0, "CONT");
    stack.wait_ready(Kind::Persist, 0).await;
    wait_until_both_own(stack).await;
    load.advance(200, &format!("{context}, after it woke")).await;
}

/// Waits until SIGSTOP has come to a process.
pub(crate) async fn wait_until_stopped(pid: u32, context: &str) {
    let stat = format!("/proc/{pid}/stat");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let stat = std::fs::read_to_string(&stat).expect("the process is there");
        if stat
            .rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('T'))
        {
            return;
        }
        assert!(Instant::now() < deadline, "{context}: it does not freeze");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until each of the two persisters owns a partition.
pub(crate) async fn wait_until_both_own(stack: &NativeStack) {
    let deadline = Instant::now() + PATIENCE;
    while owned(stack, 0).await == 0 || owned(stack, 1).await == 0 {
        assert!(Instant::now() < deadline, "they do not share\n{}", stack.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn wait_until_owns(stack: &NativeStack, number: usize, partitions: usize, context: &str) {
    let deadline = Instant::now() + PATIENCE;
    while owned(stack, number).await < partitions {
        assert!(
            Instant::now() < deadline,
            "{context}: persister {number} does not take over\n{}",
            stack.log()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How many partitions a persister owns.
pub(crate) async fn owned(stack: &NativeStack, number: usize) -> usize {
    stack
        .metric(Kind::Persist, number, "wakelog_persister_owned_partitions")
        .await as usize
}

fn sample(page: &str, series: &str) -> f64 {
    let value = page
        .lines()
        .find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {series} in\n{page}"))
}
