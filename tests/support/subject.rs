//! A session that is mistreated, with what its body must be.

use bytes::Bytes;
use tonic::Status;
use wakelog_client::{Connection, new_nonce};
use wakelog_model::WriterNonce;
use wakelog_proto::v1::commit_conversation_parts_request::Message;
use wakelog_proto::v1::{
    AckLevel, CommitConversationFrameRequest, DescribeSessionResponse, LifetimeGrant, LifetimeStatus,
};

use super::relay::{Acked, commit, entry_of, frame, hello, parts_of, stream_whole};
use super::session::{attach, describe, export, open};

/// A session, its writer and what it wrote.
#[derive(Debug, Clone)]
pub struct Subject {
    pub session: String,
    pub partition: i32,
    pub lifetime: LifetimeGrant,
    pub nonce: WriterNonce,
    /// The last entry of the lifetime.
    pub last_seq: u64,
    /// The last checkpoint and every later delta.
    pub body: Vec<u8>,
}

impl Subject {
    /// Opens a session whose first writer has written one entry.
    pub async fn open(connection: &Connection, name: &str) -> Self {
        let session = open(connection, name).await;
        Self::open_in(connection, session).await
    }

    /// The same in a session that was opened before.
    pub async fn open_in(connection: &Connection, session: String) -> Self {
        let nonce = new_nonce();
        let lifetime = attach(connection, &session, nonce, Bytes::new(), false)
            .await
            .expect("it attaches");
        let described = describe(connection, &session).await.expect("it is described");
        let partition = described.summary.expect("a summary").partition;
        let mut subject = Self {
            session,
            partition,
            lifetime,
            nonce,
            last_seq: 0,
            body: Vec::new(),
        };
        let first = format!("{{\"session\":\"{}\"}}\n", subject.session);
        subject.checkpoint(connection, first.as_bytes()).await;
        subject
    }

    /// The lifetime token.
    pub fn token(&self) -> &str {
        &self.lifetime.token
    }

    /// Binds the next lifetime, for a new writer.
    pub async fn attach_anew(&mut self, connection: &Connection) {
        self.nonce = new_nonce();
        let last = self.lifetime.lifetime_id.clone();
        self.lifetime = attach(connection, &self.session, self.nonce, last, false)
            .await
            .expect("it attaches");
        self.last_seq = 0;
    }

    /// A frame of this writer that is as it should be.
    pub fn frame(&self, entry_seq: u64, entry: &[u8]) -> CommitConversationFrameRequest {
        frame(&self.session, self.nonce, entry_seq, entry)
    }

    /// The next frame.
    pub fn next_frame(&self) -> CommitConversationFrameRequest {
        let seq = self.last_seq + 1;
        self.frame(seq, format!("{{\"entry\":{seq}}}\n").as_bytes())
    }

    /// The messages of a stream with one whole entry.
    pub fn entry_stream(&self, entry_seq: u64, checkpoint: bool, entry: &[u8]) -> Vec<Message> {
        let parts = parts_of(entry_seq, checkpoint, entry)
            .into_iter()
            .map(Message::Part);
        std::iter::once(hello(&self.session, self.nonce))
            .chain(parts)
            .collect()
    }

    /// Writes a delta through the unary call.
    pub async fn write(&mut self, connection: &Connection, entry: &[u8]) {
        let frame = self.frame(self.last_seq + 1, entry);
        let answer = commit(connection, Some(self.token()), &frame).await;
        self.took(answer, entry);
    }

    /// Writes a delta as parts.
    pub async fn write_parts(&mut self, connection: &Connection, entry: &[u8]) {
        let messages = self.entry_stream(self.last_seq + 1, false, entry);
        let answer = stream_whole(connection, Some(self.token()), messages).await;
        self.took(answer, entry);
    }

    /// Writes a checkpoint through the unary call.
    pub async fn checkpoint(&mut self, connection: &Connection, entry: &[u8]) {
        let mut frame = self.frame(self.last_seq + 1, entry);
        entry_of(&mut frame).checkpoint = true;
        let answer = commit(connection, Some(self.token()), &frame).await;
        self.body.clear();
        self.took(answer, entry);
    }

    /// It is active, in generation `generation`, with `quarantined` records in quarantine; it writes on, and its body is
    /// exactly what it wrote.
    pub async fn goes_on(&mut self, connection: &Connection, quarantined: u64, context: &str) {
        let described = self.described(connection).await;
        assert_eq!(described.quarantined_records, quarantined, "{context}");
        let summary = described.summary.expect("a summary");
        assert_eq!(summary.generation, self.lifetime.generation, "{context}");
        assert_eq!(summary.lifetime_status(), LifetimeStatus::Active, "{context}");
        assert_eq!(
            described.lifetimes[0].applied_entry_seq, self.last_seq,
            "{context}"
        );
        let next = format!("{{\"after\":{context:?}}}\n");
        self.write(connection, next.as_bytes()).await;
        self.check(connection, context).await;
    }

    /// Its body is exactly what it wrote.
    pub async fn check(&self, connection: &Connection, context: &str) {
        let exported = export(connection, &self.session).await;
        let (_, body) = exported.unwrap_or_else(|error| panic!("{context}: {error}"));
        assert!(
            body == self.body,
            "{context}: the body has {} bytes, written were {}",
            body.len(),
            self.body.len()
        );
    }

    /// What is said about it.
    pub async fn described(&self, connection: &Connection) -> DescribeSessionResponse {
        describe(connection, &self.session)
            .await
            .expect("it is described")
    }

    #[track_caller]
    fn took(&mut self, answer: Result<Acked, Status>, entry: &[u8]) {
        self.last_seq += 1;
        match answer {
            Ok(acked) => assert_eq!(acked, (self.last_seq, AckLevel::Store)),
            Err(status) => panic!("entry {} of {} is refused: {status}", self.last_seq, self.session),
        }
        self.body.extend_from_slice(entry);
    }
}
