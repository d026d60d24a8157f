//! Clients of the three engines.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_s3::config::{Credentials, Region};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use wakelog_embedded::{ArchiveAddress, Engines, Options};

pub(crate) const TOPIC: &str = "records";
const BOUND: Duration = Duration::from_secs(20);

pub(crate) async fn start(folder: &std::path::Path) -> Engines {
    Engines::start(Options::new(folder)).await.unwrap()
}

pub(crate) fn only_log(folder: &std::path::Path, port: u16) -> Options {
    Options {
        hot_tail: false,
        archive: false,
        log_port: port,
        ..Options::new(folder)
    }
}

pub(crate) fn only_hot_tail(folder: &std::path::Path) -> Options {
    Options {
        log: false,
        archive: false,
        ..Options::new(folder)
    }
}

pub(crate) fn kafka(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers);
    config
}

pub(crate) async fn create_topic(brokers: &str) {
    let admin: AdminClient<DefaultClientContext> = kafka(brokers).create().unwrap();
    let topic = NewTopic::new(TOPIC, 2, TopicReplication::Fixed(1));
    let results = admin.create_topics(&[topic], &AdminOptions::new()).await.unwrap();
    results.into_iter().for_each(|result| {
        result.unwrap();
    });
}

pub(crate) async fn produce(brokers: &str, payload: &[u8]) -> i64 {
    let producer: FutureProducer = kafka(brokers)
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .create()
        .unwrap();
    let record = FutureRecord::to(TOPIC)
        .partition(1)
        .key("session")
        .payload(payload);
    producer
        .send(record, BOUND)
        .await
        .map_err(|(error, _)| error)
        .unwrap()
        .offset
}

/// The payload of the record at `offset` of partition 1.
pub(crate) async fn consume(brokers: &str, offset: i64) -> Vec<u8> {
    let config = kafka(brokers);
    tokio::task::spawn_blocking(move || {
        let consumer: BaseConsumer = config
            .clone()
            .set("group.id", "reader")
            .set("fetch.wait.max.ms", "10")
            .create()
            .unwrap();
        let mut assignment = TopicPartitionList::new();
        assignment
            .add_partition_offset(TOPIC, 1, Offset::Offset(offset))
            .unwrap();
        consumer.assign(&assignment).unwrap();
        let record = consumer.poll(BOUND).expect("a record in time").unwrap();
        record.payload().unwrap_or_default().to_vec()
    })
    .await
    .unwrap()
}

/// Host and port of every broker that the metadata names.
pub(crate) async fn advertised(brokers: &str) -> BTreeSet<String> {
    let config = kafka(brokers);
    tokio::task::spawn_blocking(move || {
        let consumer: BaseConsumer = config.create().unwrap();
        let metadata = consumer.fetch_metadata(None, BOUND).unwrap();
        metadata
            .brokers()
            .iter()
            .map(|broker| format!("{}:{}", broker.host(), broker.port()))
            .collect()
    })
    .await
    .unwrap()
}

pub(crate) fn s3(address: &ArchiveAddress) -> aws_sdk_s3::Client {
    let config = aws_sdk_s3::Config::builder()
        .behavior_version_latest()
        .endpoint_url(&address.endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new(
            &address.access_key,
            &address.secret_key,
            None,
            None,
            "test",
        ))
        .force_path_style(true)
        .build();
    aws_sdk_s3::Client::from_conf(config)
}
