//! A persister that freezes in the middle of a batch, past its session time-out, and wakes after its successor has worked.

use std::time::{Duration, Instant};

use rand::RngCore as _;
use sqlx::{Connection as _, PgConnection};
use wakelog_client::Connection;
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
            let load = load_on_every_partition(&connection, seed).await;
            wait_until_stopped(stack.pid(Kind::Persist, 0), &context).await;
            wakes_too_late(&mut stack, &load, &context).await;
            ends_well(&mut stack, load, &context).await;
        }
    }
}

/// The same in the middle of sending rows: the server has half of a statement.
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
    let load = load_on_every_partition(&connection, 1).await;
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
    // The successor has folded what the frozen one had in hand, and more, on every partition.
    let before = progress(stack).await;
    let deadline = Instant::now() + PATIENCE;
    while !progress(stack)
        .await
        .iter()
        .zip(&before)
        .all(|(now, before)| now > before)
    {
        assert!(
            Instant::now() < deadline,
            "{context}: the successor does not get on\n{}",
            stack.log()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let page = get(&stack.http(Kind::Persist, 1), "/metrics")
        .await
        .expect("metrics");
    let claims = sample(&page, "wakelog_store_claim_seconds_count");
    // The lock time-out is 2 s.
    let in_bounds = sample(&page, "wakelog_store_claim_seconds_bucket{le=\"2.5\"}");
    assert_eq!(claims, in_bounds, "{context}: a claim waited too long");
    assert!(claims >= f64::from(PARTITIONS), "{context}: {claims} claims");
    stack.signal(Kind::Persist, 0, "CONT");
    // What it still says of itself is from before; that its successor gives partitions up says that it is back.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (woken, successor) = (owned(stack, 0).await, owned(stack, 1).await);
        if successor < PARTITIONS as usize && woken + successor == PARTITIONS as usize {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "{context}: it is of no use any more\n{}",
            stack.log()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stack.wait_ready(Kind::Persist, 0).await;
    load.advance(200, &format!("{context}, after it woke")).await;
}

/// Two writers on each partition.
async fn load_on_every_partition(connection: &Connection, seed: u64) -> Load {
    let mut sessions = Vec::new();
    for number in 0..2 * PARTITIONS {
        let level = if number < PARTITIONS {
            AckLevel::Log
        } else {
            AckLevel::Store
        };
        let session = open_on(connection, &format!("load-{number}"), number % PARTITIONS).await;
        sessions.push(Loaded::attach(connection, &session, level).await);
    }
    Load::start_in(sessions, seed, Duration::from_millis(5))
}

/// How far each partition is folded.
async fn progress(stack: &NativeStack) -> Vec<i64> {
    let mut connection = PgConnection::connect(&stack.database_url())
        .await
        .expect("a connection");
    let offsets = sqlx::query_scalar("SELECT next_offset FROM stream_progress ORDER BY partition")
        .fetch_all(&mut connection)
        .await
        .expect("the progress");
    connection.close().await.ok();
    offsets
}

/// Waits until SIGSTOP has come to a process.
pub(crate) async fn wait_until_stopped(pid: u32, context: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !is_stopped(pid) {
        assert!(Instant::now() < deadline, "{context}: it does not freeze");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether a signal has stopped a process.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is there");
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('T'))
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
    stack.share(Kind::Persist, number).await
}

fn sample(page: &str, series: &str) -> f64 {
    let value = page
        .lines()
        .find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {series} in\n{page}"))
}
