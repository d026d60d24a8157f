//! Writes into the topic past every service, and reads what the persister counted.

use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message as _;
use rdkafka::ClientConfig;
use rdkafka::producer::{FutureProducer, FutureRecord};
use wakelog_model::{LifetimeId, part_digest};
use wakelog_proto::v1::session_record::Record;
use wakelog_proto::v1::{EntryPart, LifetimeBound, SessionRecord};

use crate::support::stack::Stack;
use crate::support::subject::Subject;
use crate::support::within;

/// How many partitions the log of a test has.
pub(crate) const PARTITIONS: i32 = 4;

/// Whoever can reach the brokers.
pub(crate) struct Topic {
    name: String,
    producer: FutureProducer,
}

impl Topic {
    pub(crate) fn of(stack: &Stack) -> Self {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", stack.brokers());
        config.set("acks", "all");
        config.set("linger.ms", "0");
        config.set("message.timeout.ms", "30000");
        Self {
            name: stack.topic(),
            producer: config.create().expect("a producer"),
        }
    }

    /// Puts a record, whatever it is, and returns once the log has it.
    pub(crate) async fn put(&self, partition: i32, key: Option<&[u8]>, value: Option<&[u8]>) {
        let record = FutureRecord::<[u8], [u8]> {
            topic: &self.name,
            partition: Some(partition),
            payload: value,
            key,
            timestamp: None,
            headers: None,
        };
        let sent = self.producer.send(record, Duration::from_secs(30));
        let delivered = within("a raw record", sent).await;
        if let Err((error, _)) = delivered {
            panic!("the log did not take a raw record: {error}");
        }
    }

    /// Puts a record of a session.
    pub(crate) async fn put_record(&self, partition: i32, session: &str, record: Record) {
        let value = SessionRecord { record: Some(record) }.encode_to_vec();
        self.put(partition, Some(session.as_bytes()), Some(&value)).await;
    }

    /// Puts a record of a session where the session lives.
    pub(crate) async fn put_of(&self, subject: &Subject, record: Record) {
        self.put_record(subject.partition, &subject.session, record).await;
    }

    /// Puts a part where its session lives.
    pub(crate) async fn put_part(&self, subject: &Subject, part: EntryPart) {
        self.put_of(subject, Record::EntryPart(part)).await;
    }
}

/// An entry of one part, as the subject's writer would have it published.
pub(crate) fn entry_part(subject: &Subject, lifetime_seq: u64, plain: &[u8]) -> EntryPart {
    let plain = Bytes::copy_from_slice(plain);
    let digest = Bytes::copy_from_slice(&part_digest(&plain).0);
    EntryPart {
        lifetime_id: subject.lifetime.lifetime_id.clone(),
        generation: subject.lifetime.generation,
        writer_nonce: Bytes::copy_from_slice(subject.nonce.as_bytes()),
        lifetime_seq,
        part: 0,
        last: true,
        checkpoint: false,
        encoding: 1,
        plain_length: plain.len() as u32,
        part_digest: digest.clone(),
        body: plain,
        part_count: 1,
        entry_digest: digest,
    }
}

/// The first part of an entry of several.
pub(crate) fn first_part(subject: &Subject, lifetime_seq: u64, byte: u8) -> EntryPart {
    let plain = vec![byte; crate::support::relay::PART_BYTES];
    EntryPart {
        last: false,
        part_count: 0,
        entry_digest: Bytes::new(),
        ..entry_part(subject, lifetime_seq, &plain)
    }
}

/// A bind that is what it says.
pub(crate) fn bind(subject: &Subject, request_id: &str, generation: u64) -> LifetimeBound {
    let session = subject.session.parse().expect("a session id");
    let lifetime = LifetimeId::for_bind(session, request_id, generation);
    LifetimeBound {
        lifetime_id: Bytes::copy_from_slice(lifetime.as_bytes()),
        generation,
        request_id: request_id.to_owned(),
    }
}

/// What the persister has counted under a name and a label, over all partitions.
pub(crate) async fn counted(stack: &Stack, name: &str, label: &str, value: &str) -> u64 {
    let page = stack.metrics().await;
    let labelled = format!("{label}=\"{value}\"");
    let is_wanted = |line: &&str| line.starts_with(name) && line.contains(&labelled);
    let number = |line: &str| {
        line.split_whitespace()
            .next_back()
            .and_then(|count| count.parse::<f64>().ok())
    };
    page.lines().filter(is_wanted).filter_map(number).sum::<f64>() as u64
}

/// Waits until so many records are in quarantine for a reason. They are counted a moment after they are stored.
pub(crate) async fn expect_quarantined(stack: &Stack, reason: &str, records: u64) {
    expect_counted(
        stack,
        "wakelog_persister_quarantined_records_total",
        "reason",
        reason,
        records,
    )
    .await;
}

/// Waits until so many records have come to an outcome.
pub(crate) async fn expect_outcome(stack: &Stack, outcome: &str, records: u64) {
    expect_counted(
        stack,
        "wakelog_persister_records_total",
        "outcome",
        outcome,
        records,
    )
    .await;
}

/// Waits until so many partitions have stopped for a reason.
pub(crate) async fn expect_stopped(stack: &Stack, reason: &str, partitions: u64) {
    expect_counted(
        stack,
        "wakelog_persister_stopped_partitions",
        "reason",
        reason,
        partitions,
    )
    .await;
}

async fn expect_counted(stack: &Stack, name: &str, label: &str, value: &str, records: u64) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let found = counted(stack, name, label, value).await;
        if found == records {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{name} {label}={value}: {found} and not {records}\n{}",
            stack.log()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
