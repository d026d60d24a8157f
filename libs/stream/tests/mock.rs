//! What no real broker does when it is asked to: against the mock cluster of librdkafka.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use wakelog_stream::{
    ConsumerEvent, Effect, Error, GroupConsumer, Options, PartitionOwner, Producer, PublishError,
};

const TOPIC: &str = "log";

fn cluster(partitions: i32) -> (MockCluster<'static, DefaultProducerContext>, Options) {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(TOPIC, partitions, 1).unwrap();
    let options = Options::new(cluster.bootstrap_servers(), TOPIC);
    (
        cluster,
        Options {
            session_timeout: Duration::from_secs(6),
            ..options
        },
    )
}

#[tokio::test]
async fn a_producer_outlives_a_fatal_error_of_its_client() {
    let (cluster, options) = cluster(1);
    cluster.request_errors(
        RDKafkaApiKey::InitProducerId,
        &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED],
    );
    let producer = Producer::new(&options).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut fatal = 0;
    let offset = loop {
        let outcome = match producer.publish(0, "key", b"value") {
            Ok(delivery) => delivery.await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(offset) => break offset,
            Err(PublishError::Fatal { .. }) => fatal += 1,
            Err(other) => println!("{other:?}"),
        }
        assert!(Instant::now() < deadline, "it never publishes again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(fatal > 0, "a fatal error must be seen as one");
    assert_eq!(offset, 0);
}

#[tokio::test]
async fn a_publish_that_times_out_may_have_happened() {
    let (cluster, options) = cluster(1);
    let options = Options {
        message_timeout: Duration::from_secs(1),
        ..options
    };
    let producer = Producer::new(&options).unwrap();
    // The time-out of a message counts from its enqueueing, so a client that has yet to connect may eat all of it.
    publish_until_delivered(&producer).await;
    cluster.broker_down(1).unwrap();
    let error = producer.publish(0, "key", b"value").unwrap().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        ("unknown", Effect::Unknown),
        "{error}"
    );
    cluster.broker_up(1).unwrap();
    publish_until_delivered(&producer).await;
}

async fn publish_until_delivered(producer: &Producer) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while producer.publish(0, "key", b"value").unwrap().await.is_err() {
        assert!(Instant::now() < deadline, "it never publishes");
    }
}

/// Starts partition 0 where the log never was.
struct Lost;

impl PartitionOwner for Lost {
    fn assigned(
        &self,
        partition: i32,
    ) -> BoxFuture<'static, Result<i64, Box<dyn std::error::Error + Send + Sync>>> {
        Box::pin(async move { Ok(if partition == 0 { 1000 } else { 0 }) })
    }

    fn revoked(&self, _partition: i32, _lost: bool) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

#[tokio::test]
async fn an_offset_outside_of_the_log_stops_its_partition_only() {
    let (_cluster, options) = cluster(2);
    let producer = Producer::new(&options).unwrap();
    for partition in 0..2 {
        producer
            .publish(partition, "key", b"before")
            .unwrap()
            .await
            .unwrap();
    }
    let (consumer, mut events) = GroupConsumer::start(&options, Arc::new(Lost)).unwrap();
    let mut streams = Vec::new();
    let error = loop {
        let event = tokio::time::timeout(Duration::from_secs(60), events.recv())
            .await
            .unwrap()
            .unwrap();
        match event {
            ConsumerEvent::Assigned { partition, records } => streams.push((partition, records)),
            ConsumerEvent::PartitionError { partition: 0, error } => break error,
            other => panic!("{other:?}"),
        }
    };
    assert!(
        matches!(
            error,
            Error::OffsetOutOfRange {
                partition: 0,
                offset: 1000,
                low: 0,
                high: 1
            }
        ),
        "{error:?}"
    );
    producer.publish(1, "key", b"after").unwrap().await.unwrap();
    for (partition, records) in &mut streams {
        let mut values = Vec::new();
        while *partition == 1 && values.len() < 2 {
            values.extend(
                records
                    .next_batch(10, 1 << 20)
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|record| record.value),
            );
        }
        match partition {
            0 => assert!(records.next_batch(10, 1 << 20).await.is_none()),
            _ => assert_eq!(values, ["before", "after"]),
        }
    }
    consumer.shutdown(Duration::from_secs(60)).await.unwrap();
}
