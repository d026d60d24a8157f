//! Committing one entry by one unary call.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use wakelog_client::{Bearer, Connection};
use wakelog_model::IdempotencyKey;
use wakelog_proto::v1::agent_frame::Frame;
use wakelog_proto::v1::relay_service_client::RelayServiceClient;
use wakelog_proto::v1::{AckLevel, AgentFrame, CommitConversationFrameRequest, TranscriptEntry};

use crate::Error;
use crate::pipeline::HeldSession;

/// A writer that waits for each ack before it sends the next entry.
pub(crate) struct UnaryWriter {
    relay: RelayServiceClient<InterceptedService<Channel, Bearer>>,
    session: HeldSession,
    last_seq: u64,
}

impl UnaryWriter {
    /// Goes on after `last_seq`.
    pub(crate) fn new(connection: &Connection, session: &HeldSession, last_seq: u64) -> Result<Self, Error> {
        let bearer = Bearer::new(&session.grant.token)?;
        Ok(Self {
            relay: RelayServiceClient::with_interceptor(connection.relay_channel(), bearer),
            session: session.clone(),
            last_seq,
        })
    }

    /// Commits an entry. Returns how long its ack took.
    pub(crate) async fn commit(&mut self, entry: Bytes, ack_level: AckLevel) -> Result<Duration, Error> {
        self.last_seq += 1;
        let key = IdempotencyKey {
            nonce: self.session.nonce,
            lifetime_seq: self.last_seq,
        };
        let entry = TranscriptEntry {
            entry,
            checkpoint: false,
            entry_seq: self.last_seq,
        };
        let request = CommitConversationFrameRequest {
            session_id: self.session.id.clone(),
            idempotency_key: key.to_string(),
            frame: Some(AgentFrame {
                frame: Some(Frame::TranscriptEntry(entry)),
            }),
            ack_level: ack_level.into(),
        };
        let started = Instant::now();
        let acked = self.relay.commit_conversation_frame(request).await?;
        let took = started.elapsed();
        if acked.into_inner().acked_entry_seq < self.last_seq {
            return Err(Error::Wrong(format!(
                "entry {} was not acknowledged",
                self.last_seq
            )));
        }
        Ok(took)
    }

    /// The last entry that was committed.
    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq
    }
}
