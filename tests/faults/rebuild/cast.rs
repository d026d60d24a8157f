//! Sessions of every kind that a rebuild has to bring back.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use rdkafka::ClientConfig;
use rdkafka::producer::{FutureProducer, FutureRecord};
use wakelog_client::{Connection, new_nonce};
use wakelog_model::WriterNonce;
use wakelog_proto::v1::session_record::Record;
use wakelog_proto::v1::{AccessChanged, AckLevel, SessionRecord};

use super::place::Place;
use crate::archive::{entry, until};
use crate::support::load::Loaded;
use crate::support::relay::stream_left_open;
use crate::support::session::{attach, describe, erase, open_below, stop, writer};
use crate::support::subject::Subject;

/// Plain bytes of an entry of three parts.
const LARGE: usize = 1_300_000;

/// Sessions of every kind.
pub(super) struct Cast {
    /// Deltas of which the valve has moved the oldest.
    pub(super) valve: Loaded,
    /// A lifetime that has ended, after several checkpoints.
    ended: Loaded,
    /// A second lifetime.
    taken_over: Loaded,
    /// Its first one: session, nonce, token.
    pub(super) superseded: (String, WriterNonce, String),
    /// Nothing happens to it after the states were taken.
    idle: Loaded,
    /// A sub-session of it.
    below: Loaded,
    /// Opened after the states were taken.
    young: Option<Loaded>,
    /// An entry of which only some parts came before the states were taken.
    unfinished: Subject,
    large: Vec<u8>,
    /// Bob may see it.
    pub(super) shared: String,
    /// Bob might, once.
    pub(super) revoked: String,
    /// Sessions and sub-sessions, erased before or after the states were taken.
    pub(super) erased: Vec<String>,
    erased_later: String,
}

impl Cast {
    /// Everything that happens before the states are taken.
    pub(super) async fn open(place: &Place) -> Self {
        let connection = &place.stack.connect().await;
        let mut valve = loaded(connection, "valve", 1).await;
        for number in 2..80 {
            valve.send(entry(number, 1_000, false)).await;
        }
        valve.drain().await;
        let mut ended = loaded(connection, "ended", 1).await;
        for number in 2..40 {
            ended.send(entry(number, 500, number % 15 == 0)).await;
        }
        ended.drain().await;
        stop(connection, &ended.lifetime).await.expect("it ends");
        let first = loaded(connection, "taken-over", 2).await;
        let superseded = (
            first.lifetime.session_id.clone(),
            first.nonce,
            first.lifetime.token.clone(),
        );
        let mut taken_over = Loaded::attach_again(connection, first).await;
        taken_over.send(entry(3, 700, false)).await;
        taken_over.drain().await;
        let idle = loaded(connection, "idle", 3).await;
        let below = open_below(connection, &idle.lifetime.session_id, "below").await;
        let mut below = Loaded::attach(connection, &below, AckLevel::Store).await;
        below.send(entry(1, 300, true)).await;
        below.drain().await;
        let (shared, revoked) = (
            Subject::open(connection, "shared").await,
            Subject::open(connection, "revoked").await,
        );
        let records = [(&shared, 1), (&revoked, 1), (&revoked, 0)];
        for (subject, role) in records {
            give_bob(place, subject, role).await;
        }
        let (gone, gone_below) = with_child(connection, "gone").await;
        erase(connection, &gone).await.expect("it is erased");
        let (later, later_below) = with_child(connection, "later").await;
        let unfinished = Subject::open(connection, "unfinished").await;
        let large = vec![b'z'; LARGE];
        leave_unfinished(place, connection, &unfinished, &large).await;
        let bob = place.connect_as_bob().await;
        until("bob may see what is shared", async || {
            describe(&bob, &shared.session).await.is_ok()
        })
        .await;
        Self {
            valve,
            ended,
            taken_over,
            superseded,
            idle,
            below,
            young: None,
            unfinished,
            large,
            shared: shared.session,
            revoked: revoked.session,
            erased: vec![gone, gone_below, later.clone(), later_below],
            erased_later: later,
        }
    }

    /// What happens after the states were taken and before the database is lost.
    pub(super) async fn go_on_uncovered(&mut self, place: &Place) {
        let connection = &place.stack.connect().await;
        for number in 80..90 {
            self.valve.send(entry(number, 1_000, false)).await;
        }
        self.valve.drain().await;
        self.taken_over.send(entry(4, 100, true)).await;
        self.taken_over.drain().await;
        self.young = Some(loaded(connection, "young", 5).await);
        erase(connection, &self.erased_later).await.expect("it is erased");
    }

    /// The sessions with their oracles.
    pub(super) fn loaded(&self) -> Vec<&Loaded> {
        let young = self.young.iter();
        [
            &self.valve,
            &self.ended,
            &self.taken_over,
            &self.idle,
            &self.below,
        ]
        .into_iter()
        .chain(young)
        .collect()
    }

    /// The same writers go on, in the same lifetimes; where one has ended, the next one.
    pub(super) async fn go_on(&mut self, connection: &Connection) {
        let young = self.young.iter_mut();
        let writers = [
            &mut self.valve,
            &mut self.taken_over,
            &mut self.idle,
            &mut self.below,
        ];
        for writer in writers.into_iter().chain(young) {
            writer.send(entry(500, 400, false)).await;
            writer.drain().await;
        }
        // The parts that came before are not needed again, and do no harm.
        let large = self.large.clone();
        self.unfinished.write_parts(connection, &large).await;
        self.unfinished
            .goes_on(connection, 0, "an entry that was not complete")
            .await;
        for session in self.loaded() {
            session.check(connection, "after the rebuild").await;
        }
    }

    /// More, which nobody archives.
    pub(super) async fn write_more(&mut self, place: &Place) {
        let connection = &place.stack.connect().await;
        let id = self.valve.lifetime.session_id.clone();
        let nonce = new_nonce();
        let lifetime = attach(connection, &id, nonce, Bytes::new(), true)
            .await
            .expect("a writer takes over");
        let mut more = writer(connection, &lifetime, nonce, AckLevel::Store)
            .await
            .expect("the writer opens");
        more.append(Bytes::from_static(b"more\n"), false)
            .await
            .expect("an append");
        more.drain().await.expect("a drain");
    }
}

pub(super) async fn loaded(connection: &Connection, name: &str, entries: u64) -> Loaded {
    let mut loaded = Loaded::open(connection, name, AckLevel::Store).await;
    for number in 1..=entries {
        loaded.send(entry(number, 600, number == 1)).await;
    }
    loaded.drain().await;
    loaded
}

/// A session with a sub-session, both with entries.
async fn with_child(connection: &Connection, name: &str) -> (String, String) {
    let parent = loaded(connection, name, 3).await.lifetime.session_id;
    let child = open_below(connection, &parent, &format!("{name}-below")).await;
    let mut writer = Loaded::attach(connection, &child, AckLevel::Store).await;
    writer.send(entry(1, 300, true)).await;
    writer.drain().await;
    (parent, child)
}

/// Sends all parts of the next entry but the last one.
async fn leave_unfinished(place: &Place, connection: &Connection, subject: &Subject, large: &[u8]) {
    let mut messages = subject.entry_stream(subject.last_seq + 1, false, large);
    messages.pop();
    let parts = messages.len() as i64 - 1;
    let (connection, token) = (connection.clone(), subject.token().to_owned());
    let sending = tokio::spawn(async move { stream_left_open(&connection, Some(&token), messages).await });
    place.unfinished_parts(parts).await;
    sending.abort();
}

async fn give_bob(place: &Place, subject: &Subject, role: i32) {
    let access = Record::AccessChanged(AccessChanged {
        account: "bob".to_owned(),
        role,
    });
    let value = SessionRecord { record: Some(access) };
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", place.stack.brokers());
    let producer: FutureProducer = config.create().expect("a producer");
    let value = Bytes::from(value.encode_to_vec());
    let record = FutureRecord::<str, [u8]>::to(place.stack.topic())
        .partition(subject.partition)
        .key(&subject.session)
        .payload(&value);
    let sent = producer.send(record, Duration::from_secs(30)).await;
    sent.expect("the log takes it");
}
