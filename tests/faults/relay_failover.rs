//! A writer that moves to a second relay and back: while the first still holds records in its queue, while its publishes fail,
//! while the persister is stopped. No loss, no false gap, no dead lifetime; what was acknowledged is in the log.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message as _;
use rdkafka::ClientConfig;
use rdkafka::Message as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{Offset, TopicPartitionList};
use wakelog_client::{Connection, Writer, WriterOptions, new_nonce};
use wakelog_model::{Digest16, WriterNonce, decode_part};
use wakelog_proto::v1::session_record::Record;
use wakelog_proto::v1::{AckLevel, LifetimeGrant, SessionRecord};

use crate::frozen_persister::wait_until_stopped;
use crate::stops_and_verifies;
use crate::support::native::{Kind, NativeStack};
use crate::support::session::{self, attach_first, export, open, writer};
use crate::support::{PATIENCE, within};

/// A writer whose entries are numbered, and what was acknowledged to it at which level.
struct Moving {
    lifetime: LifetimeGrant,
    nonce: WriterNonce,
    sent: u64,
    acked: u64,
}

impl Moving {
    async fn open(connection: &Connection, name: &str) -> Self {
        let session = open(connection, name).await;
        let nonce = new_nonce();
        let lifetime = attach_first(connection, &session, nonce)
            .await
            .expect("it attaches");
        Self {
            lifetime,
            nonce,
            sent: 0,
            acked: 0,
        }
    }

    /// The same writer on one relay; what it holds is whatever was not acknowledged before.
    async fn on(&self, stack: &NativeStack, relays: &str) -> Writer {
        let connection = stack
            .connect_to(&stack.endpoints(Kind::Reconstruct), relays)
            .await;
        writer(&connection, &self.known_lifetime(), self.nonce, AckLevel::Log)
            .await
            .expect("the writer opens")
    }

    /// The lifetime as this writer knows it: what was acknowledged is not sent again.
    fn known_lifetime(&self) -> LifetimeGrant {
        LifetimeGrant {
            applied_entry_seq: self.acked,
            ..self.lifetime.clone()
        }
    }

    /// Hands its next entries to the writer.
    async fn append(&mut self, writer: &mut Writer, entries: u64) {
        for _ in 0..entries {
            self.sent += 1;
            within("an append", writer.append(entry(self.sent), false))
                .await
                .expect("an append");
        }
    }

    /// Waits until the writer has everything acknowledged.
    async fn drain(&mut self, writer: &mut Writer) {
        let acked = within("a drain", writer.drain()).await.expect("a drain");
        self.acked = acked.entry_seq;
    }

    /// Everything that it sent was acknowledged: the body is all of it, and the log has each entry that was acknowledged.
    async fn is_whole(&self, stack: &NativeStack, context: &str) {
        assert_eq!(self.acked, self.sent, "{context}");
        let connection = stack.connect().await;
        let (_, body) = export(&connection, &self.lifetime.session_id)
            .await
            .expect("an export");
        let expected: Vec<u8> = (1..=self.sent)
            .flat_map(|number| entry(number).to_vec())
            .collect();
        assert!(
            body == expected,
            "{context}: {} bytes and not {}",
            body.len(),
            expected.len()
        );
        let logged = entries_in_log(stack, &self.lifetime.session_id);
        for number in 1..=self.acked {
            assert_eq!(
                logged.get(&number),
                Some(&entry(number)),
                "{context}: entry {number} was acknowledged"
            );
        }
    }
}

fn entry(number: u64) -> Bytes {
    format!("{{\"moving\":{number}}}\n").into()
}

/// Invariants acked-is-durable, no-silent-gap, one-writer: the first relay's publishes fail with an unknown effect, the writer
/// goes to the second and, when that dies, back to the first.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_when_a_writer_goes_to_another_relay_and_back() {
    for failpoint in ["stream::publish", "stream::publish_after", "ingest::before_ack"] {
        let mut stack = NativeStack::prepare().await;
        stack.set_of(
            Kind::Ingest,
            0,
            "FAILPOINTS",
            &format!("{failpoint}=20*off->3*return->off"),
        );
        stack.up().await;
        let connection = stack.connect().await;
        let mut moving = Moving::open(&connection, failpoint).await;
        let mut writer = moving.on(&stack, &stack.endpoints(Kind::Ingest)).await;
        for number in 0..120 {
            moving.append(&mut writer, 1).await;
            if number == 60 {
                within("a drain", writer.drain()).await.expect("a drain");
                // What was published after all, the second relay finds in the store.
                let taken = stack
                    .metric(Kind::Ingest, 1, "wakelog_ingest_entries_total")
                    .await;
                let found = stack
                    .metric(Kind::Ingest, 1, "wakelog_ingest_repeats_total")
                    .await;
                assert!(taken + found > 0.0, "{failpoint}: the writer has not moved");
            }
            if number == 90 {
                // The second relay dies with whatever it has in flight.
                stack.kill(Kind::Ingest, 1);
            }
        }
        moving.drain(&mut writer).await;
        moving.is_whole(&stack, failpoint).await;
        stack.start(Kind::Ingest, 1).await;
        stops_and_verifies(&mut stack, failpoint);
    }
}

/// Invariants acked-is-durable, no-silent-gap, exactly-once-fold: the first relay freezes with records in its queue. The writer
/// goes to the second one and gets on; then the first wakes and publishes what it held.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_when_a_frozen_relay_publishes_late() {
    for pass in [9, 40] {
        let context = format!("frozen at publish {pass}");
        let mut stack = NativeStack::prepare().await;
        stack.set_of(
            Kind::Ingest,
            0,
            "WAKELOG_TEST_FREEZE",
            &format!("stream::publish:{pass}"),
        );
        stack.up().await;
        let connection = stack.connect().await;
        let mut moving = Moving::open(&connection, "frozen-relay").await;
        let options = WriterOptions {
            // Soon sure that nothing comes any more.
            silence: Duration::from_secs(2),
            ..WriterOptions::default()
        };
        let opened = Writer::open(
            connection.relays(),
            moving.known_lifetime(),
            moving.nonce,
            options,
        );
        let mut writer = within("opening a writer", opened)
            .await
            .expect("the writer opens");
        moving.append(&mut writer, 100).await;
        within("a drain", writer.drain())
            .await
            .expect("the second relay goes on");
        wait_until_stopped(stack.pid(Kind::Ingest, 0), &context).await;
        // Back to the first one, which publishes what it held.
        stack.signal(Kind::Ingest, 0, "CONT");
        stack.kill(Kind::Ingest, 1);
        moving.append(&mut writer, 20).await;
        moving.drain(&mut writer).await;
        moving.is_whole(&stack, &context).await;
        let session = &moving.lifetime.session_id;
        let (records, entries) = (
            parts_in_log(&stack, session).len(),
            entries_in_log(&stack, session).len(),
        );
        assert!(
            records > entries,
            "{context}: nothing that the first relay held came late"
        );
        stack.start(Kind::Ingest, 1).await;
        stops_and_verifies(&mut stack, &context);
    }
}

/// Invariants acked-is-durable, no-silent-gap: the persister is stopped, so that the second relay can't ask the store what was
/// applied. It must neither refuse nor acknowledge out of order; when the persister is back everything goes on.
#[tokio::test(flavor = "multi_thread")]
async fn no_silent_gap_when_the_relay_changes_while_the_persister_is_stopped() {
    let mut stack = NativeStack::prepare().await;
    stack.up().await;
    let connection = stack.connect().await;
    let mut moving = Moving::open(&connection, "stopped-persister").await;
    let mut writer = moving.on(&stack, &stack.endpoint(Kind::Ingest, 0)).await;
    moving.append(&mut writer, 30).await;
    moving.drain(&mut writer).await;
    for number in 0..2 {
        assert!(stack.stop(Kind::Persist, number).success());
    }
    // The log takes them, and nobody folds them.
    moving.append(&mut writer, 30).await;
    moving.acked = within("a drain", writer.drain())
        .await
        .expect("LOG acks need no persister")
        .entry_seq;
    assert_eq!(moving.acked, 60);
    drop(writer);

    // The second relay has never seen this lifetime, and can't ask.
    let relay = stack.endpoint(Kind::Ingest, 1);
    let second = stack
        .connect_to(&stack.endpoints(Kind::Reconstruct), &relay)
        .await;
    let (lifetime, nonce) = (moving.known_lifetime(), moving.nonce);
    let away = tokio::spawn(async move {
        let mut moved = session::writer(&second, &lifetime, nonce, AckLevel::Log).await?;
        moved.append(entry(61), false).await?;
        moved.drain().await
    });
    let deadline = Instant::now() + PATIENCE;
    while stack
        .metric(Kind::Ingest, 1, "wakelog_ingest_refusals_total")
        .await
        == 0.0
    {
        assert!(
            Instant::now() < deadline && !away.is_finished(),
            "it must say that it can't tell yet"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stack.up().await;
    moving.sent = 61;
    moving.acked = within("the second relay", away)
        .await
        .expect("no panic")
        .expect("a drain, once the persister is back")
        .entry_seq;

    // And back to the first one, whose cache ends at 60.
    let mut writer = moving.on(&stack, &stack.endpoint(Kind::Ingest, 0)).await;
    moving.append(&mut writer, 10).await;
    moving.drain(&mut writer).await;
    moving.is_whole(&stack, "after the persister came back").await;
    stops_and_verifies(&mut stack, "after the persister came back");
}

/// The bodies of a session's entries by number, as the log has them.
fn entries_in_log(stack: &NativeStack, session: &str) -> BTreeMap<u64, Bytes> {
    parts_in_log(stack, session).into_iter().collect()
}

/// What the log holds of a session, in order: numbers and bodies of its one-part entries, decoded as a reader would.
fn parts_in_log(stack: &NativeStack, session: &str) -> Vec<(u64, Bytes)> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", stack.brokers());
    config.set("group.id", "a-test-that-reads");
    config.set("enable.auto.commit", "false");
    let consumer: BaseConsumer = config.create().expect("a consumer");
    let mut entries = Vec::new();
    for partition in 0..crate::support::native::fleet::PARTITIONS {
        let (low, high) = stack.engines().kafka.watermarks(stack.topic(), partition);
        let mut at = TopicPartitionList::new();
        at.add_partition_offset(stack.topic(), partition, Offset::Offset(low))
            .expect("an offset");
        consumer.assign(&at).expect("an assignment");
        let mut next = low;
        while next < high {
            let record = consumer
                .poll(Duration::from_secs(30))
                .expect("a record in time")
                .expect("a record");
            next = record.offset() + 1;
            if record.key() != Some(session.as_bytes()) {
                continue;
            }
            let value =
                SessionRecord::decode(record.payload().unwrap_or_default()).expect("a session record");
            if let Some(Record::EntryPart(part)) = value.record {
                let digest = Digest16::from_slice(&part.part_digest).expect("a digest");
                let length = part.plain_length as usize;
                let body = decode_part(part.encoding, &part.body, length, digest).expect("a whole body");
                entries.push((part.lifetime_seq, body));
            }
        }
    }
    entries
}
