//! Writers on several sessions at once, each with an oracle that remembers what was acknowledged.

use wakelog_client::{Connection, Writer};
use wakelog_proto::v1::{AckLevel, LifetimeGrant};

use crate::support::oracle::Sent;
use crate::support::seed::{self, Entry};
use crate::support::session::{export, open_and_attach, resume};
use crate::support::within;

/// A session under load.
pub(crate) struct Loaded {
    pub(crate) lifetime: LifetimeGrant,
    pub(crate) sent: Sent,
    writer: Writer,
}

impl Loaded {
    /// Opens a session and attaches its writer.
    pub(crate) async fn open(connection: &Connection, request_id: &str, ack_level: AckLevel) -> Self {
        let (lifetime, writer) = open_and_attach(connection, request_id, ack_level).await;
        Self {
            lifetime,
            sent: Sent::default(),
            writer,
        }
    }

    /// Sends an entry; what the writer has read of the acknowledgements counts.
    pub(crate) async fn send(&mut self, entry: Entry) {
        self.sent.entries.push(entry.clone());
        within("an append", self.writer.append(entry.bytes, entry.checkpoint))
            .await
            .expect("an append");
        self.sent.acked = self.writer.acked().entry_seq as usize;
    }

    /// Waits until everything is acknowledged.
    pub(crate) async fn drain(&mut self) {
        let acked = within("a drain", self.writer.drain()).await.expect("a drain");
        self.sent.acked = acked.entry_seq as usize;
        assert_eq!(
            self.sent.acked,
            self.sent.entries.len(),
            "a drained writer has everything acknowledged"
        );
    }

    /// Sends `count` seeded entries without waiting for their acknowledgements more than the window demands.
    pub(crate) async fn send_seeded(&mut self, seed: u64, count: u64) {
        let mut rng = seed::rng(seed);
        for number in 1..=count {
            let entry = seed::entry(&mut rng, number);
            self.send(entry).await;
        }
    }

    /// Export and resume must both hold what was acknowledged.
    pub(crate) async fn check(&self, connection: &Connection, context: &str) {
        let session = &self.lifetime.session_id;
        let (_, exported) = export(connection, session)
            .await
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        self.sent
            .check(&exported)
            .unwrap_or_else(|wrong| panic!("{context}: export of {session}: {wrong}"));
        let request = format!("check-{}", uuid::Uuid::new_v4());
        let (_, resumed) = resume(connection, session, &request)
            .await
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        self.sent
            .check(&resumed)
            .unwrap_or_else(|wrong| panic!("{context}: resume of {session}: {wrong}"));
    }
}
