//! A session that has nothing to do with what a test does to others: it goes on as if nothing had happened.

use bytes::Bytes;
use wakelog_client::{Connection, Writer, new_nonce};
use wakelog_proto::v1::{AckLevel, LifetimeGrant, LifetimeStatus};

use super::session::{attach_first, describe, export, open_on, writer};
use super::within;

/// The session and what it wrote.
pub struct Bystander {
    lifetime: LifetimeGrant,
    writer: Writer,
    entries: u64,
    body: Vec<u8>,
}

impl Bystander {
    /// Opens it on a partition, so that it depends on whatever happens there.
    pub async fn open_on(connection: &Connection, name: &str, partition: i32) -> Self {
        let session = open_on(connection, name, partition).await;
        let nonce = new_nonce();
        let lifetime = attach_first(connection, &session, nonce)
            .await
            .expect("the bystander attaches");
        let writer = writer(connection, &lifetime, nonce, AckLevel::Store)
            .await
            .expect("the bystander writes");
        Self {
            lifetime,
            writer,
            entries: 0,
            body: Vec::new(),
        }
    }

    /// Writes an entry, waits until the hot tail has it, and exports exactly what was written. So everything that was on
    /// its partition before is folded when this returns.
    pub async fn goes_on(&mut self, connection: &Connection, context: &str) {
        self.entries += 1;
        let entry = format!("{{\"bystander\":{}}}\n", self.entries).into_bytes();
        self.body.extend_from_slice(&entry);
        let write = async {
            self.writer.append(Bytes::from(entry), self.entries == 1).await?;
            self.writer.drain().await
        };
        let acked = within("the bystander's entry", write).await;
        let acked = acked.unwrap_or_else(|error| panic!("{context}: the bystander: {error}"));
        assert_eq!(
            (acked.entry_seq, acked.ack_level),
            (self.entries, AckLevel::Store),
            "{context}"
        );

        let session = &self.lifetime.session_id;
        let exported = export(connection, session).await;
        let (_, body) = exported.unwrap_or_else(|error| panic!("{context}: the bystander: {error}"));
        assert!(
            body == self.body,
            "{context}: the bystander's body is another one"
        );
        let described = describe(connection, session)
            .await
            .expect("the bystander is described");
        assert_eq!(described.quarantined_records, 0, "{context}");
        let summary = described.summary.expect("a summary");
        assert_eq!(
            (summary.generation, summary.lifetime_status()),
            (1, LifetimeStatus::Active),
            "{context}"
        );
    }
}
