//! A database that loses commits that it had confirmed, as a standby that was behind does when it takes over, or a server that
//! does not wait for its disk. The log has everything: it is noticed, and folded again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use sqlx::{Connection as _, PgConnection};
use tonic::{Code, Status};
use wakelog_client::{Connection, new_nonce};
use wakelog_proto::v1::{AckLevel, CommitConversationFrameRequest, RefusalReason};

use crate::engine_outages::RECOVERY;
use crate::support::PATIENCE;
use crate::support::load::{Load, Loaded};
use crate::support::native::fleet::PARTITIONS;
use crate::support::native::{Engines, Kind, NativeStack};
use crate::support::process::signal;
use crate::support::refusal::refused;
use crate::support::relay::{Acked, commit, frame};
use crate::support::session::attach;
use crate::{bodies_are_right, ends_well, stops_and_verifies};

/// A server that confirms commits that only its memory has.
const HASTY: [&str; 4] = [
    "synchronous_commit=off",
    "wal_buffers=64MB",
    "bgwriter_lru_maxpages=0",
    "checkpoint_timeout=1h",
];

/// Invariants exactly-once-fold, acked-is-durable: under the services' feet; the persister that holds the partition says so.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_when_the_database_loses_confirmed_commits() {
    let (mut stack, load) = under_load().await;
    let disk = UnwrittenLog::begin(&stack).await;
    load.advance_within(100, "nothing is written any more", RECOVERY)
        .await;
    let young = a_session_that_is_lost(&stack).await;
    let confirmed = disk.lose(&stack).await;
    load.advance_within(100, "commits were lost", RECOVERY).await;
    assert_noticed(&stack).await;
    wait_until_folded(&stack, confirmed).await;
    bodies_are_right(&stack, &[young], "a session that was opened in what was lost").await;
    ends_well(&mut stack, load, "commits were lost").await;
}

/// The same while every service is gone as well: nobody remembers what was confirmed, but the group's offsets in the log do.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_when_commits_are_lost_and_every_service_with_them() {
    let (mut stack, load) = under_load().await;
    let disk = UnwrittenLog::begin(&stack).await;
    let young = a_session_that_is_lost(&stack).await;
    let deadline = Instant::now() + PATIENCE;
    while offsets_of_the_group(&stack) <= disk.folded {
        assert!(Instant::now() < deadline, "the group commits no offsets");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stack.kill_all();
    let confirmed = disk.lose(&stack).await;
    stack.up().await;
    load.advance_within(100, "everything was started again", RECOVERY)
        .await;
    assert_noticed(&stack).await;
    wait_until_folded(&stack, confirmed).await;
    bodies_are_right(&stack, &[young], "a session that was opened in what was lost").await;
    ends_well(&mut stack, load, "everything was started again").await;
}

/// The same where nothing is written any more: no batch shows it, and a resume that waits for what was lost is what would bring one.
#[tokio::test(flavor = "multi_thread")]
async fn resume_is_current_when_commits_are_lost_and_nobody_writes() {
    let mut stack = stack_on(&HASTY).await;
    stack.up().await;
    let connection = stack.connect().await;
    let mut old = Loaded::open(&connection, "old", AckLevel::Store).await;
    old.send_seeded(1, 20).await;
    old.drain().await;
    let disk = UnwrittenLog::begin(&stack).await;
    old.send_seeded(2, 20).await;
    old.drain().await;
    let young = a_session_that_is_lost(&stack).await;
    let confirmed = disk.lose(&stack).await;
    assert_noticed(&stack).await;
    wait_until_folded(&stack, confirmed).await;
    bodies_are_right(&stack, &[old, young], "nobody wrote").await;
    stops_and_verifies(&mut stack, "nobody wrote");
}

/// Invariant one-writer: a bind is lost that a relay had not seen, in a loss that does not reach what it had seen. The superseded
/// writer gets no `LOG` ack for what the fold will put aside.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_when_a_bind_is_lost_that_its_relay_had_not_seen() {
    let mut stack = stack_on(&HASTY).await;
    stack.up().await;
    let connection = stack.connect().await;
    let mut old = Loaded::open(&connection, "superseded", AckLevel::Store).await;
    old.send_seeded(3, 20).await;
    old.drain().await;
    let (id, token) = (old.lifetime.session_id.clone(), old.lifetime.token.clone());
    let acked = commit_log(&connection, &token, &frame(&id, old.nonce, 21, b"{}\n")).await;
    assert_eq!(acked.expect("its own session"), (21, AckLevel::Log));
    let acked = commit(&connection, Some(&token), &frame(&id, old.nonce, 22, b"{}\n")).await;
    assert_eq!(acked.expect("its own session"), (22, AckLevel::Store));
    is_on_disk(&stack).await;
    stack.signal(Kind::Ingest, 0, "STOP");
    let disk = UnwrittenLog::begin(&stack).await;
    let nonce = new_nonce();
    let rival = attach(&connection, &id, nonce, Bytes::new(), true).await;
    let rival = rival.expect("a rival takes over");
    for number in 0..2 {
        stack.signal(Kind::Persist, number, "STOP");
    }
    disk.lose(&stack).await;
    stack.signal(Kind::Ingest, 0, "CONT");
    wait_for_line(&stack, "acks wait until the log is folded").await;
    let refused_late = {
        let (connection, late) = (connection.clone(), frame(&id, old.nonce, 23, b"{\"late\":1}\n"));
        tokio::spawn(async move {
            let deadline = Instant::now() + RECOVERY;
            loop {
                match commit_log(&connection, &token, &late).await {
                    Err(unavailable)
                        if unavailable.code() == Code::Unavailable && Instant::now() < deadline => {}
                    answer => return answer,
                }
            }
        })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!refused_late.is_finished(), "nobody knows yet whether it counts");
    for number in 0..2 {
        stack.signal(Kind::Persist, number, "CONT");
    }
    let answer = refused_late.await.expect("no panic");
    refused("a superseded writer", answer, RefusalReason::Superseded);
    // Once everything is folded again the log is enough again.
    let deadline = Instant::now() + RECOVERY;
    let mut number = 1;
    loop {
        let next = frame(&id, nonce, number, b"{\"rival\":1}\n");
        match commit_log(&connection, &rival.token, &next).await {
            Ok((_, AckLevel::Log)) => break,
            Ok((acked, _)) => {
                assert_eq!(acked, number);
                number += 1;
            }
            // The persisters that were woken share the partitions anew.
            Err(error) if error.code() == Code::Unavailable => {}
            Err(error) => panic!("the rival: {error}"),
        }
        assert!(Instant::now() < deadline, "no LOG ack any more\n{}", stack.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stops_and_verifies(&mut stack, "a bind was lost");
}

/// What a relay knows a server by is another number after each end, and the same as long as there is none.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_came_back_is_told_from_the_one_before() {
    let stack = stack_on(&[]).await;
    let postgres = &stack.engines().postgres;
    let mut runs = vec![run_of_the_server(&stack).await];
    postgres.stop().await;
    postgres.start().await;
    runs.push(run_of_the_server(&stack).await);
    postgres.kill().await;
    postgres.start().await;
    runs.push(run_of_the_server(&stack).await);
    crashes_within(&stack).await;
    runs.push(run_of_the_server(&stack).await);
    assert!(runs.is_sorted_by(|before, after| before < after), "{runs:?}");
}

async fn run_of_the_server(stack: &NativeStack) -> i64 {
    let options = wakelog_store::Options::new(stack.database_url());
    let store = wakelog_store::Store::connect(options).await.expect("a store");
    let run = store.server_run().await.expect("an answer");
    assert_eq!(store.server_run().await.expect("an answer"), run);
    store.close().await;
    run
}

async fn commit_log(
    connection: &Connection,
    token: &str,
    frame: &CommitConversationFrameRequest,
) -> Result<Acked, Status> {
    let mut frame = frame.clone();
    frame.ack_level = AckLevel::Log.into();
    commit(connection, Some(token), &frame).await
}

/// A stack that is not up yet, on a database server of its own.
async fn stack_on(settings: &[&str]) -> NativeStack {
    let engines = Engines::prepare(&[], settings);
    engines.start().await;
    NativeStack::prepare_on(Arc::new(engines)).await
}

async fn under_load() -> (NativeStack, Load) {
    let mut stack = stack_on(&HASTY).await;
    // The archiver's commits are lost as well.
    stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", "100000");
    stack.up().await;
    let connection = stack.connect().await;
    let load = Load::start(&connection, "hasty", 1, 4, Duration::from_millis(5)).await;
    load.advance(100, "before anything is lost").await;
    (stack, load)
}

/// A child of the server dies, and it recovers without being started again.
async fn crashes_within(stack: &NativeStack) {
    let writer = running_log_writer(stack).await;
    signal("KILL", writer);
    wait_until_back(stack, writer).await;
}

/// What a database holds in memory alone, from some moment on.
struct UnwrittenLog {
    writer: u32,
    /// Records that were folded by that moment.
    folded: i64,
}

impl UnwrittenLog {
    /// From now on nothing is written to the disk.
    async fn begin(stack: &NativeStack) -> Self {
        let writer = running_log_writer(stack).await;
        signal("STOP", writer);
        Self {
            writer,
            folded: folded(&mut database(stack).await).await,
        }
    }

    /// The server crashes, and comes back by itself with what the disk has. Returns how many records it had confirmed as folded.
    async fn lose(self, stack: &NativeStack) -> i64 {
        let before = folded(&mut database(stack).await).await;
        assert!(before > self.folded, "nothing was confirmed that could be lost");
        signal("KILL", self.writer);
        wait_until_back(stack, self.writer).await;
        before
    }
}

/// The server notices the death of its child in its own time, and takes connections until then.
async fn wait_until_back(stack: &NativeStack, dead: u32) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match log_writer(stack).await {
            Ok(Some(writer)) if writer != dead => return,
            other => assert!(
                Instant::now() < deadline,
                "the server does not come back: {other:?}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn running_log_writer(stack: &NativeStack) -> u32 {
    let writer = log_writer(stack).await.expect("the server answers");
    writer.expect("the server has a process that writes its log")
}

/// The process of the server that writes its log, if it has one at the moment.
async fn log_writer(stack: &NativeStack) -> Result<Option<u32>, sqlx::Error> {
    let mut database = PgConnection::connect(&stack.database_url()).await?;
    let writer: Option<i32> =
        sqlx::query_scalar("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
            .fetch_optional(&mut database)
            .await?;
    Ok(writer.map(|writer| u32::try_from(writer).expect("a process id")))
}

/// Whatever the database has confirmed is on its disk.
async fn is_on_disk(stack: &NativeStack) {
    let written = sqlx::query("CHECKPOINT")
        .execute(&mut database(stack).await)
        .await;
    written.expect("a checkpoint");
}

/// Waits until the first relay has logged this.
async fn wait_for_line(stack: &NativeStack, line: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !stack.whole_log(Kind::Ingest, 0).contains(line) {
        assert!(Instant::now() < deadline, "no {line:?}\n{}", stack.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until so many records are folded, again.
async fn wait_until_folded(stack: &NativeStack, records: i64) {
    let deadline = Instant::now() + RECOVERY;
    while folded(&mut database(stack).await).await < records {
        assert!(
            Instant::now() < deadline,
            "what was lost is not folded again\n{}",
            stack.log()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A session whose every row is lost, and all of it acknowledged.
async fn a_session_that_is_lost(stack: &NativeStack) -> Loaded {
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "young", AckLevel::Store).await;
    session.send_seeded(7, 40).await;
    session.drain().await;
    session
}

async fn assert_noticed(stack: &NativeStack) {
    let deadline = Instant::now() + PATIENCE;
    while stack
        .total(Kind::Persist, "wakelog_persister_lost_commits_total", "")
        .await
        < 1.0
    {
        assert!(Instant::now() < deadline, "nobody noticed\n{}", stack.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn database(stack: &NativeStack) -> PgConnection {
    PgConnection::connect(&stack.database_url())
        .await
        .expect("a connection")
}

async fn folded(database: &mut PgConnection) -> i64 {
    sqlx::query_scalar("SELECT coalesce(sum(next_offset), 0)::bigint FROM stream_progress")
        .fetch_one(database)
        .await
        .expect("the progress")
}

/// How far the group says that it has come, over all partitions.
fn offsets_of_the_group(stack: &NativeStack) -> i64 {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", stack.brokers())
        .set("group.id", stack.topic());
    let consumer: BaseConsumer = config.create().expect("a client");
    let mut asked = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        asked.add_partition(stack.topic(), partition);
    }
    let offsets = consumer
        .committed_offsets(asked, Duration::from_secs(10))
        .expect("the group's offsets");
    let committed = offsets.elements().into_iter().map(|found| match found.offset() {
        Offset::Offset(offset) => offset,
        _ => 0,
    });
    committed.sum()
}
