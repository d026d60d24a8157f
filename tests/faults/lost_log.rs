//! The topic itself: recreated, its head eaten by retention, with the stored offset inside the hole or exactly at its start.

use std::time::{Duration, Instant};

use bytes::Bytes;
use rdkafka::ClientConfig;
use rdkafka::producer::{FutureProducer, FutureRecord};
use wakelog_proto::v1::{AckLevel, RefusalReason};

use crate::support::PATIENCE;
use crate::support::load::Loaded;
use crate::support::native::fleet::PARTITIONS;
use crate::support::native::{Kind, NativeStack};
use crate::support::process::get;
use crate::support::refusal::refused as refused_for;
use crate::support::relay::{commit, frame};
use crate::support::session::{export, open_on};

/// Invariant no-silent-gap: a topic that was deleted and made again is not the one that was folded. Its partitions stop loudly,
/// nothing is folded from them, and doctor says why: those that hold other records at once, those that hold fewer after a minute.
#[tokio::test(flavor = "multi_thread")]
async fn no_silent_gap_when_the_topic_is_recreated() {
    let (mut stack, sessions) = stack_with_entries_on_every_partition().await;
    assert!(stack.stop_all().success());
    let (kafka, topic) = (&stack.engines().kafka, stack.topic().to_owned());
    kafka.delete_topic(&topic).await;
    // No service makes an empty one in its place.
    let http = stack.http(Kind::Persist, 0);
    let persist = stack.command(&["persist", "--http-listen", &http]).output();
    let refused = persist.expect("persist runs");
    assert_eq!(refused.status.code(), Some(5), "a dependency is wrong");
    let gone = "does not exist, but the database has folded";
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains(gone),
        "{refused:?}"
    );
    let said = doctor(&stack);
    assert!(said.contains(gone), "{said}");
    assert!(!said.contains("first service that starts"), "{said}");
    kafka.create_topic(&topic, PARTITIONS).await;
    // Partition 0 has grown beyond what was folded; the others hold less.
    for _ in 0..400 {
        put(&stack, 0, b"of another life").await;
    }
    // The first relay has not yet read how far anything is folded when it is asked.
    stack.set_of(Kind::Ingest, 0, "FAILPOINTS", "ingest::watcher=return");
    for number in 0..2 {
        stack.spawn(Kind::Persist, number);
        stack.spawn(Kind::Reconstruct, number);
        stack.spawn(Kind::Ingest, number);
    }
    stack.wait_ready(Kind::Reconstruct, 0).await;
    stack.wait_ready(Kind::Ingest, 0).await;
    stack.wait_ready(Kind::Ingest, 1).await;
    // Invariant acked-is-durable: what the new log takes nobody folds, so nobody acknowledges it.
    for (turn, session) in sessions[1..].iter().enumerate() {
        let connection = stack.connect_turned(turn.min(1)).await;
        let next = session.sent.entries.len() as u64 + 1;
        let id = &session.lifetime.session_id;
        let mut late = frame(id, session.nonce, next, b"{\"late\":1}\n");
        late.ack_level = AckLevel::Log.into();
        let answer = commit(&connection, Some(&session.lifetime.token), &late).await;
        refused_for("a late entry", answer, RefusalReason::DependencyUnavailable);
    }
    wait_for_stopped(&stack, "log_replaced", 1).await;
    wait_for_stopped(&stack, "beyond_end", PARTITIONS as u64 - 1).await;
    let said = doctor(&stack);
    assert!(
        said.contains("partition 0 stops") && said.contains("the topic was replaced"),
        "{said}"
    );
    // The doctor was given no relay: the server that it was given is none.
    let no_relay = format!("{} takes no entries", stack.endpoint(Kind::Reconstruct, 0));
    assert!(said.contains(&no_relay), "{said}");
    assert!(
        said.contains("partition 1 stops") && said.contains("the log ends at"),
        "{said}"
    );
    assert!(stack.is_alive(Kind::Persist, 0) && stack.is_alive(Kind::Persist, 1));
    assert!(
        !crate::support::process::ready(&stack.http(Kind::Persist, 0)).await,
        "it says so"
    );
    // What was folded stays, and nothing is added. Where the log has more than that, a body might be short: it is refused.
    let connection = stack.connect().await;
    for (partition, session) in (0..).zip(&sessions) {
        match (partition, export(&connection, &session.lifetime.session_id).await) {
            (0, Err(refused)) => assert_eq!(
                refused.refusal_reason(),
                Some(RefusalReason::DependencyUnavailable),
                "{refused}"
            ),
            (0, Ok(_)) => panic!("a body of a partition that is stopped before its end"),
            (_, Ok((_, body))) => {
                let entries = session.sent.check(&body).expect("the body");
                assert_eq!(entries, session.sent.entries.len());
            }
            (_, Err(error)) => panic!("partition {partition}: {error}"),
        }
    }
}

/// Invariant no-silent-gap: retention ate records that were never folded. The partition stops loudly, and the others go on. Where
/// retention ate exactly what was folded, the persister goes on.
#[tokio::test(flavor = "multi_thread")]
async fn no_silent_gap_when_the_head_of_the_log_is_eaten() {
    let (mut stack, sessions) = stack_with_entries_on_every_partition().await;
    for number in 0..2 {
        assert!(stack.stop(Kind::Persist, number).success());
    }
    // Unfolded records on partition 0, and on 1 none: its stored offset is its end.
    for _ in 0..10 {
        put(&stack, 0, b"nobody folded this").await;
    }
    let kafka = &stack.engines().kafka;
    let (_, unfolded_end) = kafka.watermarks(stack.topic(), 0);
    let (_, folded_end) = kafka.watermarks(stack.topic(), 1);
    kafka
        .eat(stack.topic(), &[(0, unfolded_end - 3), (1, folded_end)])
        .await;
    let said = doctor(&stack);
    assert!(
        said.contains("partition 0 stops") && said.contains("the log starts at"),
        "{said}"
    );
    assert!(!said.contains("partition 1 stops"), "{said}");

    for number in 0..2 {
        stack.spawn(Kind::Persist, number);
    }
    wait_for_stopped(&stack, "retention_hole", 1).await;
    let connection = stack.connect().await;
    for (partition, session) in (0..).zip(sessions) {
        if partition == 0 {
            continue;
        }
        goes_on(session, &connection).await;
    }
    assert!(stack.is_alive(Kind::Persist, 0) && stack.is_alive(Kind::Persist, 1));
    let said = doctor(&stack);
    assert!(
        said.contains("partition 0 stops") && said.contains("the log starts at"),
        "{said}"
    );
}

/// One session on each partition, in their order, with some entries that are folded.
async fn stack_with_entries_on_every_partition() -> (NativeStack, Vec<Loaded>) {
    let mut stack = NativeStack::prepare().await;
    stack.up().await;
    let connection = stack.connect().await;
    let mut sessions = Vec::new();
    for partition in 0..PARTITIONS {
        let session = open_on(&connection, "kept", partition).await;
        let mut loaded = Loaded::attach(&connection, &session, AckLevel::Store).await;
        loaded.send_seeded(11, 12).await;
        loaded.drain().await;
        sessions.push(loaded);
    }
    (stack, sessions)
}

async fn goes_on(mut session: Loaded, connection: &wakelog_client::Connection) {
    session.send_seeded(12, 5).await;
    session.drain().await;
    session.check(connection, "a partition that is whole").await;
}

async fn put(stack: &NativeStack, partition: i32, value: &[u8]) {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", stack.brokers());
    let producer: FutureProducer = config.create().expect("a producer");
    let value = Bytes::copy_from_slice(value);
    let record = FutureRecord::<[u8], [u8]>::to(stack.topic())
        .partition(partition)
        .payload(&value);
    producer.send(record, PATIENCE).await.expect("the log takes it");
}

fn doctor(stack: &NativeStack) -> String {
    let mut command = stack.command(&["doctor", "--server", &stack.endpoint(Kind::Reconstruct, 0)]);
    command.args(["--token", &stack.token()]);
    let output = command.output().expect("doctor runs");
    assert!(!output.status.success(), "doctor is content");
    String::from_utf8([output.stdout, output.stderr].concat()).expect("text")
}

async fn wait_for_stopped(stack: &NativeStack, reason: &str, partitions: u64) {
    // A log that ends too early is waited for a minute.
    let deadline = Instant::now() + 3 * PATIENCE;
    let series = format!("wakelog_persister_stopped_partitions{{reason=\"{reason}\"}}");
    loop {
        let mut stopped = 0.0;
        for number in 0..2 {
            let page = get(&stack.http(Kind::Persist, number), "/metrics")
                .await
                .unwrap_or_default();
            let values = page
                .lines()
                .filter_map(|line| line.strip_prefix(&series)?.trim().parse::<f64>().ok());
            stopped += values.sum::<f64>();
        }
        if stopped as u64 == partitions {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{stopped} of {partitions} partitions are stopped for {reason}\n{}",
            stack.log()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
