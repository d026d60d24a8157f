//! The two ways in which a publish can fail without telling: it happened, or it did not.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use rdkafka::mocking::MockCluster;
use wakelog_stream::{Effect, LogReader, Options, Producer};

/// One test, because fail points are global.
#[tokio::test]
async fn a_publish_of_unknown_effect_is_or_is_not_in_the_log() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("log", 1, 1).unwrap();
    let options = Options::new(cluster.bootstrap_servers(), "log");
    let producer = Producer::new(&options).unwrap();
    let reader = LogReader::new(&options).unwrap();

    fail::cfg("stream::publish", "1*return->off").unwrap();
    let error = producer.publish(0, "key", b"lost").unwrap().await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown);
    assert_eq!(producer.publish(0, "key", b"kept").unwrap().await, Ok(0));

    fail::cfg("stream::publish_after", "1*return->off").unwrap();
    let error = producer
        .publish(0, "key", b"kept in secret")
        .unwrap()
        .await
        .unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown);
    assert_eq!(producer.publish(0, "key", b"kept").unwrap().await, Ok(2));

    let record = reader.record_at(0, 1).await.unwrap().unwrap();
    assert_eq!(record.value, "kept in secret");
    assert_eq!(reader.watermarks(0).await.unwrap().high, 3);
}
