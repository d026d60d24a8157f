use std::time::{Duration, Instant};

use wakelog_stream::{
    Effect, Error, LogReader, Options, Producer, PublishError, Watermarks, describe_topic, ensure_topic,
};

use crate::support::{Log, publish};

fn numbered(count: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(|number| format!("value {number}").into_bytes())
}

#[tokio::test]
async fn a_topic_is_created_once_and_then_found() {
    let log = Log::start();
    let options = log.options(5);
    assert_eq!(describe_topic(&options).await.unwrap(), None);
    let reader = LogReader::new(&options).unwrap();
    assert!(matches!(
        reader.partition_count().await,
        Err(Error::NoTopic { .. })
    ));

    let report = ensure_topic(&options).await.unwrap();
    assert!(report.created);
    assert_eq!(report.partitions, 5);
    let again = ensure_topic(&Options {
        partitions: 9,
        ..options.clone()
    })
    .await
    .unwrap();
    assert!(!again.created);
    assert_eq!(again.partitions, 5);
    assert_eq!(describe_topic(&options).await.unwrap(), Some(again));
    assert_eq!(reader.partition_count().await.unwrap(), 5);
}

#[tokio::test]
async fn publishes_get_offsets_in_call_order() {
    let log = Log::start();
    let options = log.topic(2).await;
    let producer = Producer::new(&options).unwrap();
    let offsets = publish(&producer, 1, numbered(500)).await;
    assert_eq!(offsets, (0..500).collect::<Vec<_>>());
    producer.flush(Duration::from_secs(10)).await.unwrap();

    let reader = LogReader::new(&options).unwrap();
    assert_eq!(
        reader.watermarks(1).await.unwrap(),
        Watermarks { low: 0, high: 500 }
    );
    assert_eq!(
        reader.watermarks(0).await.unwrap(),
        Watermarks { low: 0, high: 0 }
    );
}

#[tokio::test]
async fn a_range_is_read_exactly() {
    let log = Log::start();
    let options = log.topic(2).await;
    let producer = Producer::new(&options).unwrap();
    publish(&producer, 0, numbered(300)).await;

    let reader = LogReader::new(&options).unwrap();
    for (from, to) in [(0, 300), (17, 203), (299, 300), (5, 5)] {
        let mut range = reader.read_range(0, from, to);
        for offset in from..to {
            let record = range.recv().await.unwrap().unwrap();
            assert_eq!(record.offset, offset);
            assert_eq!(record.key, "key");
            assert_eq!(record.value, format!("value {offset}"));
            assert!(record.timestamp_ms.is_some());
        }
        assert!(range.recv().await.is_none());
    }

    let record = reader.record_at(0, 42).await.unwrap().unwrap();
    assert_eq!((record.offset, &record.value[..]), (42, &b"value 42"[..]));
    assert!(reader.record_at(0, 300).await.unwrap().is_none());
    assert!(reader.record_at(0, -1).await.unwrap().is_none());
    assert!(reader.record_at(1, 0).await.unwrap().is_none());
}

#[tokio::test]
async fn a_slow_reader_of_a_range_gets_all_of_it() {
    let log = Log::start();
    let options = log.topic(1).await;
    let producer = Producer::new(&options).unwrap();
    // More than what a range holds and the client fetches ahead, together.
    let count = 80;
    for number in 0..count {
        publish(&producer, 0, [vec![number as u8; 500_000]]).await;
    }
    let reader = LogReader::new(&Options {
        consumer_buffer_bytes: 2 << 20,
        ..options
    })
    .unwrap();
    let mut range = reader.read_range(0, 0, count);
    tokio::time::sleep(Duration::from_secs(1)).await;
    for offset in 0..count {
        let record = range.recv().await.unwrap().unwrap();
        assert_eq!((record.offset, record.len()), (offset, 500_003));
        assert!(record.value.iter().all(|byte| *byte == offset as u8));
    }
    assert!(range.recv().await.is_none());
}

#[tokio::test]
async fn a_range_outside_of_the_log_is_an_error() {
    let log = Log::start();
    let options = Options {
        request_timeout: Duration::from_secs(1),
        ..log.topic(1).await
    };
    let producer = Producer::new(&options).unwrap();
    publish(&producer, 0, numbered(3)).await;
    let reader = LogReader::new(&options).unwrap();
    let beyond = reader.read_range(0, 10, 12).recv().await.unwrap();
    assert!(
        matches!(
            beyond,
            Err(Error::OffsetOutOfRange {
                partition: 0,
                offset: 10,
                low: 0,
                high: 3
            })
        ),
        "{beyond:?}"
    );

    // What is not written yet is waited for, but not for ever.
    let mut unwritten = reader.read_range(0, 2, 4);
    assert_eq!(unwritten.recv().await.unwrap().unwrap().offset, 2);
    let stalled = unwritten.recv().await.unwrap();
    assert!(
        matches!(
            stalled,
            Err(Error::Stalled {
                partition: 0,
                offset: 3,
                ..
            })
        ),
        "{stalled:?}"
    );
    assert!(unwritten.recv().await.is_none());

    let mut written_late = reader.read_range(0, 3, 4);
    publish(&producer, 0, numbered(1)).await;
    assert_eq!(written_late.recv().await.unwrap().unwrap().offset, 3);
}

#[tokio::test]
async fn a_partition_that_is_not_there_is_an_error() {
    let log = Log::start();
    let options = Options {
        request_timeout: Duration::from_secs(2),
        ..log.topic(1).await
    };
    let producer = Producer::new(&options).unwrap();
    publish(&producer, 0, numbered(1)).await;
    let refused = match producer.publish(7, "key", b"value") {
        Ok(delivery) => delivery.await.unwrap_err(),
        Err(refused) => refused,
    };
    assert_eq!(refused, PublishError::NoPartition { partition: 7 });
    assert_eq!(refused.effect(), Effect::CertainlyNot, "{refused}");
    LogReader::new(&options).unwrap().watermarks(7).await.unwrap_err();
}

#[tokio::test]
async fn a_full_queue_and_a_large_record_certainly_have_no_effect() {
    let log = Log::start();
    let options = Options {
        producer_buffer_bytes: 1 << 20,
        ..log.topic(1).await
    };
    let producer = Producer::new(&options).unwrap();
    let large = producer.publish(0, "key", &vec![0; 3 << 20]).unwrap_err();
    assert_eq!(large.kind(), "too_large", "{large}");

    let mut deliveries = Vec::new();
    let full = loop {
        match producer.publish(0, "key", &[0; 300_000]) {
            Ok(delivery) => deliveries.push(delivery),
            Err(full) => break full,
        }
        assert!(deliveries.len() < 10_000);
    };
    assert_eq!((full.kind(), full.effect()), ("queue_full", Effect::CertainlyNot));
    let accepted = deliveries.len();
    for delivery in deliveries {
        delivery.await.unwrap();
    }
    let high = LogReader::new(&options)
        .unwrap()
        .watermarks(0)
        .await
        .unwrap()
        .high;
    assert_eq!(high, accepted as i64);
}

#[tokio::test]
async fn without_a_broker_everything_ends_in_time() {
    let options = Options {
        request_timeout: Duration::from_secs(1),
        message_timeout: Duration::from_secs(1),
        ..Options::new("127.0.0.1:1", "nowhere")
    };
    let started = Instant::now();
    assert!(ensure_topic(&options).await.unwrap_err().is_unreachable());
    let reader = LogReader::new(&options).unwrap();
    assert!(reader.watermarks(0).await.unwrap_err().is_unreachable());
    assert!(reader.partition_count().await.unwrap_err().is_transient());
    assert!(
        reader
            .read_range(0, 0, 1)
            .recv()
            .await
            .unwrap()
            .unwrap_err()
            .is_unreachable()
    );
    let producer = Producer::new(&options).unwrap();
    let delivery = producer.publish(0, "key", b"value").unwrap();
    assert!(matches!(
        producer.flush(Duration::from_millis(10)).await,
        Err(Error::TimedOut { .. })
    ));
    assert_eq!(delivery.await.unwrap_err().effect(), Effect::Unknown);
    assert!(started.elapsed() < Duration::from_secs(30));
}
