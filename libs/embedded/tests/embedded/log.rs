//! The embedded log: addresses, odd folders, ports, restarts.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use wakelog_embedded::{Engines, Error};

use crate::common;

#[tokio::test(flavor = "multi_thread")]
async fn the_advertised_address_is_the_real_one_and_follows_a_new_port() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    let mut held = Vec::new();
    for round in 0..3_u8 {
        let engines = Engines::start(common::only_log(folder.path(), 0)).await.unwrap();
        let brokers = engines.brokers().unwrap();
        assert_eq!(
            common::advertised(&brokers).await,
            BTreeSet::from([brokers.clone()])
        );
        if round == 0 {
            common::create_topic(&brokers).await;
        }
        assert_eq!(common::produce(&brokers, &[round]).await, i64::from(round));
        for earlier in 0..=round {
            assert_eq!(common::consume(&brokers, i64::from(earlier)).await, [earlier]);
        }
        engines.stop().await.unwrap();
        // Held, so that the next round can't get the same port.
        held.push(TcpListener::bind(&brokers).expect("the listening socket is gone after a stop"));
        seen.push(brokers);
    }
    seen.dedup();
    assert_eq!(seen.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_folder_name_works_and_several_stacks_live_in_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut stacks = Vec::new();
    for name in ["plain", "with space", "grün-日本", "a#b?c%41&d", "quote'\"{}"] {
        let data = folder.path().join(name);
        let engines = Engines::start(common::only_log(&data, 0)).await.unwrap();
        let brokers = engines.brokers().unwrap();
        common::create_topic(&brokers).await;
        assert_eq!(common::produce(&brokers, name.as_bytes()).await, 0);
        assert!(data.join("log/tansu.db").is_file(), "{name}");
        stacks.push((name, engines));
    }
    for (name, engines) in stacks {
        assert_eq!(
            common::consume(&engines.brokers().unwrap(), 0).await,
            name.as_bytes()
        );
        engines.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_port_is_a_typed_error_and_leaves_the_folder_free() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let refused = Engines::start(common::only_log(folder.path(), port))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, Error::PortTaken { port: named } if named == port),
        "{refused}"
    );
    drop(taken);
    for _ in 0..2 {
        let engines = Engines::start(common::only_log(folder.path(), port))
            .await
            .unwrap();
        assert_eq!(engines.brokers().unwrap(), format!("127.0.0.1:{port}"));
        engines.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_go_away_at_any_time_do_not_end_the_log() {
    use tokio::io::AsyncWriteExt;
    let folder = tempfile::tempdir().unwrap();
    let engines = Engines::start(common::only_log(folder.path(), 0)).await.unwrap();
    let brokers = engines.brokers().unwrap();
    common::create_topic(&brokers).await;
    // Requests whose answers nobody waits for: Metadata of all topics (key 3, version 0), then a reset.
    let request = [0, 0, 0, 14, 0, 3, 0, 0, 0, 0, 0, 7, 255, 255, 0, 0, 0, 0];
    for length in [1, 3, 4, 9, request.len()].into_iter().cycle().take(100) {
        let mut client = tokio::net::TcpStream::connect(&brokers).await.unwrap();
        client.write_all(&request[..length]).await.unwrap();
        client.set_zero_linger().unwrap();
    }
    assert_eq!(common::produce(&brokers, b"still here").await, 0);
    assert!(
        tokio::time::timeout(Duration::from_secs(3), engines.failed())
            .await
            .is_err()
    );
    engines.stop().await.unwrap();
}

/// Joins the group, gives the first record it is assigned, and commits behind it.
async fn next_of_group(brokers: &str) -> (BaseConsumer, Vec<u8>) {
    let mut config = common::kafka(brokers);
    config
        .set("group.id", "persister")
        .set("partition.assignment.strategy", "cooperative-sticky")
        .set("session.timeout.ms", "10000")
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("fetch.wait.max.ms", "10");
    tokio::task::spawn_blocking(move || {
        let consumer: BaseConsumer = config.create().unwrap();
        consumer.subscribe(&[common::TOPIC]).unwrap();
        let started = Instant::now();
        loop {
            let polled = consumer.poll(Duration::from_secs(1));
            if let Some(Ok(record)) = polled {
                consumer.commit_message(&record, CommitMode::Sync).unwrap();
                let payload = record.payload().unwrap_or_default().to_vec();
                drop(record);
                return (consumer, payload);
            }
            assert!(
                started.elapsed() < Duration::from_secs(40),
                "the group assigns nothing: {polled:?}"
            );
        }
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_goes_on_after_a_restart_also_if_its_member_never_left() {
    let folder = tempfile::tempdir().unwrap();
    let engines = Engines::start(common::only_log(folder.path(), 0)).await.unwrap();
    let brokers = engines.brokers().unwrap();
    common::create_topic(&brokers).await;
    for record in [b"1", b"2", b"3"] {
        common::produce(&brokers, record).await;
    }
    let (never_leaves, first) = next_of_group(&brokers).await;
    assert_eq!(first, b"1");
    engines.stop().await.unwrap();

    let engines = Engines::start(common::only_log(folder.path(), 0)).await.unwrap();
    let started = Instant::now();
    let (leaves, second) = next_of_group(&engines.brokers().unwrap()).await;
    assert_eq!(second, b"2");
    println!(
        "first record {:?} after a restart with a stale member",
        started.elapsed()
    );
    tokio::task::spawn_blocking(move || drop(leaves)).await.unwrap();
    engines.stop().await.unwrap();

    let engines = Engines::start(common::only_log(folder.path(), 0)).await.unwrap();
    let started = Instant::now();
    let (leaves, third) = next_of_group(&engines.brokers().unwrap()).await;
    assert_eq!(third, b"3");
    println!("first record {:?} after a restart without one", started.elapsed());
    tokio::task::spawn_blocking(move || drop((leaves, never_leaves)))
        .await
        .unwrap();
    engines.stop().await.unwrap();
}
