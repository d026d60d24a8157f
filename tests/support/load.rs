//! Writers on several sessions at once, each with an oracle that remembers what was acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use wakelog_client::{Connection, Writer, new_nonce};
use wakelog_model::WriterNonce;

use wakelog_proto::v1::{AckLevel, LifetimeGrant};

use super::oracle::Sent;
use super::seed::{self, Entry};
use super::session::{attach, attach_first, export, open, resume, writer};

use super::{PATIENCE, within};

/// A session under load.
pub struct Loaded {
    pub lifetime: LifetimeGrant,
    pub nonce: WriterNonce,
    pub sent: Sent,
    /// Entries of the session before this lifetime.
    base: usize,
    writer: Writer,
}

impl Loaded {
    /// Opens a session and attaches its writer.
    pub async fn open(connection: &Connection, request_id: &str, ack_level: AckLevel) -> Self {
        let session = open(connection, request_id).await;
        Self::attach(connection, &session, ack_level).await
    }

    /// Attaches the first writer of a session that is open.
    pub async fn attach(connection: &Connection, session: &str, ack_level: AckLevel) -> Self {
        let nonce = new_nonce();
        let lifetime = attach_first(connection, session, nonce)
            .await
            .expect("the first writer attaches");
        let writer = writer(connection, &lifetime, nonce, ack_level)
            .await
            .expect("the writer opens");
        Self {
            lifetime,
            nonce,
            sent: Sent::default(),
            base: 0,
            writer,
        }
    }

    /// Goes on writing a session, over whatever is current.
    pub async fn attach_again(connection: &Connection, before: Self) -> Self {
        let nonce = new_nonce();
        let session = before.lifetime.session_id.clone();
        let lifetime = attach(connection, &session, nonce, bytes::Bytes::new(), true)
            .await
            .expect("a writer takes over");
        Self::in_lifetime(connection, before, lifetime, nonce).await
    }

    /// Goes on writing a session in a lifetime that was bound, by an attachment with this nonce or by a resume.
    pub async fn in_lifetime(
        connection: &Connection,
        before: Self,
        lifetime: LifetimeGrant,
        nonce: WriterNonce,
    ) -> Self {
        let writer = writer(connection, &lifetime, nonce, AckLevel::Store)
            .await
            .expect("the writer opens");
        Self {
            lifetime,
            nonce,
            base: before.sent.entries.len(),
            sent: before.sent,
            writer,
        }
    }

    /// Sends an entry; what the writer has read of the acknowledgements counts.
    pub async fn send(&mut self, entry: Entry) {
        self.sent.entries.push(entry.clone());
        within("an append", self.writer.append(entry.bytes, entry.checkpoint))
            .await
            .expect("an append");
        self.sent.acked = self.base + self.writer.acked().entry_seq as usize;
    }

    /// Waits until everything is acknowledged.
    pub async fn drain(&mut self) {
        let acked = within("a drain", self.writer.drain()).await.expect("a drain");
        self.sent.acked = self.base + acked.entry_seq as usize;
        assert_eq!(
            self.sent.acked,
            self.sent.entries.len(),
            "a drained writer has everything acknowledged"
        );
    }

    /// Sends `count` seeded entries without waiting for their acknowledgements more than the window demands.
    pub async fn send_seeded(&mut self, seed: u64, count: u64) {
        let mut rng = seed::rng(seed);
        for number in 1..=count {
            let entry = seed::entry(&mut rng, number);
            self.send(entry).await;
        }
    }

    /// An export must hold what was acknowledged. It leaves the writer alone.
    pub async fn check_export(&self, connection: &Connection, context: &str) {
        let session = &self.lifetime.session_id;
        let (_, exported) = export(connection, session)
            .await
            .unwrap_or_else(|error| panic!("{context}: export of {session}: {error}"));
        self.sent
            .check(&exported)
            .unwrap_or_else(|wrong| panic!("{context}: export of {session}: {wrong}"));
    }

    /// Export and resume must both hold what was acknowledged.
    pub async fn check(&self, connection: &Connection, context: &str) {
        self.check_export(connection, context).await;
        let session = &self.lifetime.session_id;
        let request = format!("check-{}", uuid::Uuid::new_v4());
        let (_, resumed) = resume(connection, session, &request)
            .await
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        self.sent
            .check(&resumed)
            .unwrap_or_else(|wrong| panic!("{context}: resume of {session}: {wrong}"));
    }
}

/// Writers that go on until they are told to stop, each on a session of its own; every other one waits for `STORE` acks.
pub struct Load {
    acked: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    writers: Vec<JoinHandle<Loaded>>,
}

/// Entries of a writer between two waits for all its acks: progress is seen, and windows are not always full.
const ENTRIES_BETWEEN_DRAINS: u64 = 8;

impl Load {
    /// Opens `sessions` sessions and starts writing. `pace` is the pause after each entry.
    pub async fn start(
        connection: &Connection,
        name: &str,
        seed: u64,
        sessions: u64,
        pace: Duration,
    ) -> Self {
        let mut opened = Vec::new();
        for number in 0..sessions {
            let level = if number % 2 == 0 {
                AckLevel::Log
            } else {
                AckLevel::Store
            };
            opened.push(Loaded::open(connection, &format!("{name}-{seed}-{number}"), level).await);
        }
        Self::start_in(opened, seed, pace)
    }

    /// Starts writing into sessions that are open.
    pub fn start_in(opened: Vec<Loaded>, seed: u64, pace: Duration) -> Self {
        let load = Self {
            acked: Arc::default(),
            stop: Arc::default(),
            writers: Vec::new(),
        };
        let start = |(number, session): (u64, Loaded)| {
            let (acked, stop) = (load.acked.clone(), load.stop.clone());
            tokio::spawn(write_until_told(session, seed * 1000 + number, pace, acked, stop))
        };
        let writers = (0..).zip(opened).map(start).collect();
        Self { writers, ..load }
    }

    /// Entries that were acknowledged so far, over all sessions.
    pub fn acked(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    /// Waits until so many more are acknowledged.
    pub async fn advance(&self, entries: u64, what: &str) {
        self.advance_within(entries, what, PATIENCE).await;
    }

    /// The same with another bound.
    pub async fn advance_within(&self, entries: u64, what: &str, bound: Duration) {
        let (target, deadline) = (self.acked() + entries, Instant::now() + bound);
        while self.acked() < target {
            assert!(
                Instant::now() < deadline,
                "{what}: {} of {target} entries were acknowledged within {bound:?}",
                self.acked()
            );
            let ended = self.writers.iter().filter(|writer| writer.is_finished()).count();
            assert_eq!(ended, 0, "{what}: a writer gave up");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Lets every writer wait for its last acknowledgement, and gives the sessions back.
    pub async fn finish(self) -> Vec<Loaded> {
        self.stop.store(true, Ordering::Relaxed);
        let mut sessions = Vec::new();
        for writer in self.writers {
            let ended = tokio::time::timeout(3 * PATIENCE, writer).await;
            sessions.push(ended.expect("a writer ends").expect("well"));
        }
        sessions
    }
}

async fn write_until_told(
    mut session: Loaded,
    seed: u64,
    pace: Duration,
    acked: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> Loaded {
    let mut rng = seed::rng(seed);
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let entry = seed::entry(&mut rng, number);
        session.sent.entries.push(entry.clone());
        // The writer itself gives up when nothing moves for too long.
        session
            .writer
            .append(entry.bytes, entry.checkpoint)
            .await
            .expect("an append");
        if number % ENTRIES_BETWEEN_DRAINS == 0 {
            session.writer.drain().await.expect("a drain");
        }
        let before = session.sent.acked;
        session.sent.acked = session.base + session.writer.acked().entry_seq as usize;
        acked.fetch_add((session.sent.acked - before) as u64, Ordering::Relaxed);
        tokio::time::sleep(pace).await;
    }
    session.writer.drain().await.expect("the last drain");
    session.sent.acked = session.base + session.writer.acked().entry_seq as usize;
    assert_eq!(session.sent.acked, session.sent.entries.len());
    session
}
