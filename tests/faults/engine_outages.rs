//! The engines: away, killed, out of connections, on a full disk. Each time services answer with typed refusals, no process of
//! ours ends, and everything goes on by itself.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};
use tonic::Status;
use wakelog_contract::refusal_of;
use wakelog_proto::v1::{OpenSessionRequest, RefusalReason};

use crate::ends_well;
use crate::support::PATIENCE;
use crate::support::load::Load;
use crate::support::mount::SmallDisk;
use crate::support::native::{Engines, Kind, NativeStack};
use crate::support::process::get;

/// How long an engine is away.
const AWAY: Duration = Duration::from_secs(60);

/// How long writers may take to get on once an engine is back: the longest pauses of all retries, added up.
pub(crate) const RECOVERY: Duration = Duration::from_secs(90);

/// Invariants acked-is-durable, exactly-once-fold: the database dies under load, is away for a minute and comes back.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_over_a_minute_without_the_database() {
    let (mut stack, load) = under_load(Engines::own().await, "no-database").await;
    stack.engines().postgres.kill().await;
    refuses_for(&mut stack, AWAY, "no database").await;
    nobody_is_ready(&stack, "no good answer of the database").await;
    stack.engines().postgres.start().await;
    load.advance_within(200, "the database is back", RECOVERY).await;
    everybody_is_ready(&mut stack).await;
    ends_well(&mut stack, load, "the database is back").await;
}

/// The same for the broker.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_over_a_minute_without_the_broker() {
    let (mut stack, load) = under_load(Engines::own().await, "no-broker").await;
    stack.engines().kafka.kill();
    refuses_for(&mut stack, AWAY, "no broker").await;
    nobody_is_ready(&stack, "no good answer of the log").await;
    stack.engines().kafka.start();
    load.advance_within(200, "the broker is back", RECOVERY).await;
    everybody_is_ready(&mut stack).await;
    ends_well(&mut stack, load, "the broker is back").await;
}

/// Invariant acked-is-durable: both die at the same moment and are started again at once.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_over_kill_9_of_both_engines() {
    let (mut stack, load) = under_load(Engines::own().await, "both").await;
    for round in 0..3 {
        stack.engines().kafka.kill();
        stack.engines().postgres.kill().await;
        stack.engines().postgres.start().await;
        stack.engines().kafka.start();
        let context = format!("round {round}");
        load.advance_within(100, &context, RECOVERY).await;
        all_alive(&mut stack, &context);
    }
    ends_well(&mut stack, load, "both came back").await;
}

/// Invariant acked-is-durable: others have taken every connection of the database, and those of the services are gone.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_when_the_database_has_no_connections() {
    let (mut stack, load) = under_load(Engines::own().await, "no-connections").await;
    let url = stack.engines().postgres.url("postgres");
    let mut admin = PgConnection::connect(&url).await.expect("a connection");
    let mut taken = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    // Ours give way until nothing but the test's own is left.
    loop {
        sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 't%'")
            .execute(&mut admin)
            .await
            .expect("terminated");
        while let Ok(connection) = PgConnection::connect(&url).await {
            taken.push(connection);
        }
        let left: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 't%'")
            .fetch_one(&mut admin)
            .await
            .expect("a count");
        if left == 0 {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "{left} connections of the services stay"
        );
    }
    refuses_for(&mut stack, Duration::from_secs(10), "no connections").await;
    for connection in taken {
        connection.close().await.ok();
    }
    load.advance_within(200, "there are connections again", RECOVERY)
        .await;
    ends_well(&mut stack, load, "there are connections again").await;
}

/// Invariant acked-is-durable: the disk of the database is full. If that ends the server, somebody starts it again.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_when_the_disk_of_the_database_is_full() {
    let Some(disk) = SmallDisk::mount("400m") else {
        return;
    };
    let small = ["max_wal_size=64MB", "min_wal_size=32MB"];
    let engines = Engines::prepare_at(&[], None, &small, Some(disk.path()));
    engines.start().await;
    let (mut stack, load) = under_load(engines, "full-database").await;
    full_for_a_while(&mut stack, &disk, "the database's disk is full").await;
    if !stack.engines().postgres.is_running() {
        stack.engines().postgres.start().await;
    }
    goes_on_with_room(stack, load).await;
}

/// The same for the broker, which gives up its log folder and ends.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_when_the_disk_of_the_broker_is_full() {
    let Some(disk) = SmallDisk::mount("100m") else {
        return;
    };
    let small = ["log.index.size.max.bytes=65536"];
    let engines = Engines::prepare_at(&small, Some(disk.path()), &[], None);
    engines.start().await;
    let (mut stack, load) = under_load(engines, "full-broker").await;
    full_for_a_while(&mut stack, &disk, "the broker's disk is full").await;
    if !stack.engines().kafka.is_running() {
        stack.engines().kafka.start();
    }
    goes_on_with_room(stack, load).await;
}

/// Takes every byte of the disk, sees that it is noticed and survived, and gives them back.
async fn full_for_a_while(stack: &mut NativeStack, disk: &SmallDisk, context: &str) {
    fill(disk);
    wait_until_refused(stack, context).await;
    stays_alive_for(stack, Duration::from_secs(10), context).await;
    std::fs::remove_file(disk.join("filler")).expect("the filler is removed");
    // A recovery may still be failing on the full disk: whether the engine has given up is seen a moment later.
    tokio::time::sleep(Duration::from_secs(5)).await;
}

async fn goes_on_with_room(mut stack: NativeStack, load: Load) {
    load.advance_within(200, "there is room again", RECOVERY).await;
    ends_well(&mut stack, load, "there is room again").await;
}

pub(crate) async fn under_load(engines: Engines, name: &str) -> (NativeStack, Load) {
    let mut stack = NativeStack::prepare_on(Arc::new(engines)).await;
    stack.up().await;
    let connection = stack.connect().await;
    let load = Load::start(&connection, name, 1, 4, Duration::from_millis(10)).await;
    load.advance(50, "before the outage").await;
    (stack, load)
}

/// For so long every call that needs both engines is refused as "not now", and no process ends.
pub(crate) async fn refuses_for(stack: &mut NativeStack, time: Duration, context: &str) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        let status = open_a_session(stack).await.expect_err(context);
        assert_eq!(
            refusal_of(&status).map(|refusal| refusal.reason()),
            Some(RefusalReason::DependencyUnavailable),
            "{context}: {status}"
        );
        all_alive(stack, context);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// For so long no process ends, and what is refused is refused as "not now". A full disk may let a little through.
async fn stays_alive_for(stack: &mut NativeStack, time: Duration, context: &str) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if let Err(status) = open_a_session(stack).await {
            assert_eq!(
                refusal_of(&status).map(|refusal| refusal.reason()),
                Some(RefusalReason::DependencyUnavailable),
                "{context}: {status}"
            );
        }
        all_alive(stack, context);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

pub(crate) async fn wait_until_refused(stack: &mut NativeStack, context: &str) {
    let deadline = Instant::now() + RECOVERY;
    while open_a_session(stack).await.is_ok() {
        assert!(Instant::now() < deadline, "{context}, and nobody notices");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Needs the log and the database. Bounded by the service, not by the test.
async fn open_a_session(stack: &NativeStack) -> Result<(), Status> {
    let connection = stack.connect().await;
    let request = OpenSessionRequest {
        request_id: uuid::Uuid::new_v4().to_string(),
        ..Default::default()
    };
    let answer = crate::support::within("an answer", connection.sessions().open_session(request)).await;
    answer.map(drop)
}

/// The `/readyz` of every service says no, and what is away.
async fn nobody_is_ready(stack: &NativeStack, obstacle: &str) {
    for kind in Kind::ALL {
        for number in 0..stack.count(kind) {
            let says_so = async {
                loop {
                    let page = get(&stack.http(kind, number), "/readyz")
                        .await
                        .unwrap_or_default();
                    if page.starts_with("HTTP/1.1 503") && page.contains(obstacle) {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            };
            crate::support::within(&format!("{kind:?} {number}: {obstacle}"), says_so).await;
        }
    }
}

async fn everybody_is_ready(stack: &mut NativeStack) {
    for kind in Kind::ALL {
        for number in 0..stack.count(kind) {
            stack.wait_ready(kind, number).await;
        }
    }
}

pub(crate) fn all_alive(stack: &mut NativeStack, context: &str) {
    for kind in Kind::ALL {
        for number in 0..stack.count(kind) {
            assert!(
                stack.is_alive(kind, number),
                "{context}: {kind:?} {number} has ended\n{}",
                stack.log()
            );
        }
    }
}

/// Takes every byte that is left.
fn fill(disk: &SmallDisk) {
    Command::new("dd")
        .args(["if=/dev/zero", "bs=1M"])
        .arg(format!("of={}", disk.join("filler").display()))
        .output()
        .expect("dd runs");
}
