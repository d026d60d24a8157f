//! The unary commit: one entry of at most 4 MiB, published whole.

use std::sync::Arc;

use tokio::time::Instant;
use tonic::Status;
use tonic::metadata::MetadataMap;
use wakelog_model::{EntryDigester, split_parts};
use wakelog_proto::v1::AgentFrame;

use crate::ack::Level;
use crate::admission::EntryRequest;
use crate::auth::{authenticate, check_session};
use crate::commit::Admission;
use crate::ingest::Ingest;
use crate::lane::{PublishFailure, ReadyPart};
use crate::publish::{EntryHead, PlainPart, encode};
use crate::validate::{UnaryEntry, unary_entry};
use crate::{budget, metrics, refusals};

/// How often an entry is admitted anew when other calls of its lifetime come in between.
const MAX_ATTEMPTS: usize = 8;

/// A unary request, from either service.
#[derive(Debug)]
pub(crate) struct UnaryCommit {
    /// The session that the request names, where it names one.
    pub session_id: Option<String>,
    pub idempotency_key: String,
    pub frame: Option<AgentFrame>,
    pub ack_level: i32,
}

struct EncodedEntry {
    parts: Vec<(bytes::Bytes, u64)>,
    digester: EntryDigester,
}

impl Ingest {
    /// Commits one entry. Returns its seq and what the ack stands on.
    pub(crate) async fn commit_unary(
        self: &Arc<Self>,
        metadata: &MetadataMap,
        commit: UnaryCommit,
    ) -> Result<(u64, Level), Status> {
        let call = self.open_call()?;
        let identity = authenticate(&self.signer, metadata)?;
        if let Some(session_id) = &commit.session_id {
            check_session(&identity, session_id)?;
        }
        let entry = unary_entry(
            &commit.idempotency_key,
            commit.frame,
            commit.ack_level,
            self.options.max_entry_bytes,
        )?;
        let lane = self.lanes.hold(identity)?;
        let request = EntryRequest {
            generation: identity.generation,
            nonce: entry.nonce,
            seq: entry.seq,
        };
        let head = EntryHead {
            identity,
            nonce: entry.nonce,
            seq: entry.seq,
            checkpoint: entry.checkpoint,
        };
        let encoded = encode_entry(head, &entry).await?;

        for _ in 0..MAX_ATTEMPTS {
            if self.admit(&lane, request).await? == Admission::Repeat {
                if self
                    .answer_repeat(&lane, request, entry.checkpoint, &encoded.digester)
                    .await?
                {
                    return Ok((entry.seq, Level::Store));
                }
                continue;
            }
            let total = entry.content.len() as u64;
            if !lane.look(|state| state.has_room(true, total)) {
                return Err(refusals::back_pressure(
                    "too much of this lifetime is unacknowledged",
                ));
            }
            let lengths = encoded.parts.iter().map(|(_, bytes)| *bytes);
            let Some(budgets) = budget::try_take(&self.budget, lengths) else {
                return Err(refusals::back_pressure("too much is on its way to the log"));
            };
            let parts = encoded.parts.iter().zip(budgets);
            let ready = parts.map(|((record, bytes), budget)| ReadyPart {
                record: record.clone(),
                bytes: *bytes,
                budget,
            });
            before_publish()?;
            match lane.publish_entry(&self.producer, call.owner, request, entry.asked, ready.collect()) {
                Ok(epoch) => {
                    after_publish()?;
                    metrics::entry_published("unary", total);
                    let started = Instant::now();
                    let level = lane
                        .wait_acked(entry.seq, epoch, entry.asked, self.options.ack_wait)
                        .await?;
                    metrics::ack_seconds(started.elapsed().as_secs_f64());
                    return Ok((entry.seq, level));
                }
                Err(PublishFailure::AskAgain) => {}
                Err(PublishFailure::QueueFull) => {
                    return Err(refusals::back_pressure("the producer's queue is full"));
                }
                Err(PublishFailure::Refused(status)) => return Err(status),
            }
        }
        Err(refusals::unavailable(
            "other calls of this lifetime kept coming in between",
        ))
    }
}

async fn encode_entry(head: EntryHead, entry: &UnaryEntry) -> Result<EncodedEntry, Status> {
    let mut digester = EntryDigester::default();
    let mut parts = Vec::new();
    let contents = split_parts(&entry.content);
    let count = contents.len();
    for (index, content) in contents.enumerate() {
        let bytes = content.len() as u64;
        let part = PlainPart {
            number: index as u32,
            last: index + 1 == count,
            content,
        };
        let (record, grown) = encode(head, part, digester).await?;
        digester = grown;
        parts.push((record, bytes));
    }
    Ok(EncodedEntry { parts, digester })
}

/// "It did not happen": nothing is published.
pub(crate) fn before_publish() -> Result<(), Status> {
    fail::fail_point!("ingest::before_publish", |_| Err(refusals::unavailable(
        "fail point ingest::before_publish"
    )));
    Ok(())
}

/// "It happened, and the writer is not told": the entry is on its way to the log.
pub(crate) fn after_publish() -> Result<(), Status> {
    fail::fail_point!("ingest::after_publish", |_| Err(refusals::unavailable(
        "fail point ingest::after_publish"
    )));
    Ok(())
}
