//! The pipelined commit: entries as parts, published as they arrive, acknowledged in order.
//!
//! One task per stream runs two halves side by side: one reads and publishes, the other sends acks. Either ends the
//! stream with a status; what was sent before and not acknowledged is sent again by the writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use wakelog_model::limits::REMEMBERED_ENTRIES;
use wakelog_proto::v1::commit_conversation_parts_response::Message;
use wakelog_proto::v1::{CommitConversationPartsRequest, CommitConversationPartsResponse, StreamAccepted};

use crate::ack::Level;
use crate::admission::EntryRequest;
use crate::auth::{Identity, check_session};
use crate::facts::Standing;
use crate::ingest::{Ingest, OpenCall};
use crate::lanes::HeldLane;
use crate::{metrics, refusals, validate};

mod acks;
mod parts;

/// Responses that wait for a slow reader. Acks are cumulative, so few are enough.
const QUEUED_RESPONSES: usize = 4;

/// How long acks of what was published go on after the writer broke a rule.
const LAST_ACKS_WAIT: Duration = Duration::from_secs(5);

/// What a stream answers.
pub(crate) type Responses = ReceiverStream<Result<CommitConversationPartsResponse, Status>>;

type Sender = mpsc::Sender<Result<CommitConversationPartsResponse, Status>>;

/// One stream of one writer.
struct PartsStream {
    ingest: Arc<Ingest>,
    lane: HeldLane,
    request: EntryRequest,
    asked: Level,
    owner: u64,
    marks: watch::Sender<Marks>,
    /// The last entry whose ack was sent.
    acked: AtomicU64,
}

/// How far the reading half got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    /// The last entry that this stream published, and the epoch of all that it has unacknowledged.
    published: u64,
    epoch: u64,
    /// The last repeat that the store confirmed.
    confirmed: u64,
    /// Nothing more will be published.
    done: bool,
}

/// Why reading ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The writer has no more.
    HalfClosed,
    /// The service is shutting down.
    Draining,
}

/// Serves a stream on a task of its own.
pub(crate) fn serve(
    ingest: Arc<Ingest>,
    call: OpenCall,
    identity: Identity,
    inbound: Streaming<CommitConversationPartsRequest>,
) -> Responses {
    let (responses, receiver) = mpsc::channel(QUEUED_RESPONSES);
    tokio::spawn(async move {
        // Moved in whole: a shutdown waits for it until this task ends.
        let open_call = call;
        let closing = ingest.closing.clone();
        let ended = tokio::select! {
            // The writer is gone.
            () = responses.closed() => return,
            () = closing.cancelled() => Err(refusals::shutting_down()),
            ended = Box::pin(converse(ingest, open_call.owner, identity, inbound, &responses)) => ended,
        };
        if let Err(status) = ended {
            metrics::refusal(&status);
            timeout(LAST_ACKS_WAIT, responses.send(Err(status))).await.ok();
        }
    });
    ReceiverStream::new(receiver)
}

async fn converse(
    ingest: Arc<Ingest>,
    owner: u64,
    identity: Identity,
    mut inbound: Streaming<CommitConversationPartsRequest>,
    responses: &Sender,
) -> Result<(), Status> {
    let stream = open(ingest, owner, identity, &mut inbound).await?;
    if !send(responses, Message::Accepted(stream.accepted())).await {
        return Ok(());
    }
    let acks = stream.send_acks(responses);
    tokio::pin!(acks);
    let read = {
        let parts = stream.read_parts(&mut inbound);
        tokio::pin!(parts);
        tokio::select! {
            read = &mut parts => read,
            acked = &mut acks => return acked,
        }
    };
    stream.marks.send_modify(|marks| marks.done = true);
    match read {
        Ok(End::HalfClosed) => acks.await,
        Ok(End::Draining) => acks.await.and(Err(refusals::shutting_down())),
        Err(status) => {
            timeout(LAST_ACKS_WAIT, acks).await.ok();
            Err(status)
        }
    }
}

async fn open(
    ingest: Arc<Ingest>,
    owner: u64,
    identity: Identity,
    inbound: &mut Streaming<CommitConversationPartsRequest>,
) -> Result<PartsStream, Status> {
    let first = timeout(ingest.options.hello_wait, inbound.message())
        .await
        .map_err(|_| validate::malformed("no `hello` came in time"))?
        .map_err(refusals::inbound)?
        .ok_or_else(|| validate::malformed("the stream ended before `hello`"))?;
    let hello = validate::hello(first)?;
    check_session(&identity, &hello.session_id)?;
    let lane = ingest.lanes.hold(identity)?;
    // A writer that comes back learns here what it need not send again.
    if ingest.read_standing(&lane).await.is_err() {
        ingest.refresh_standing(&lane).await?;
    }
    let terminal = |standing: &Standing| standing.terminal(identity.generation, Some(hello.nonce));
    if let Some(terminal) = lane.look(|state| state.standing().and_then(terminal)) {
        return Err(refusals::terminal(terminal));
    }
    Ok(PartsStream {
        ingest,
        lane,
        request: EntryRequest {
            generation: identity.generation,
            nonce: hello.nonce,
            seq: 0,
        },
        asked: hello.asked,
        owner,
        marks: watch::Sender::default(),
        acked: AtomicU64::new(0),
    })
}

async fn send(responses: &Sender, message: Message) -> bool {
    responses
        .send(Ok(CommitConversationPartsResponse {
            message: Some(message),
        }))
        .await
        .is_ok()
}

impl PartsStream {
    fn accepted(&self) -> StreamAccepted {
        StreamAccepted {
            max_unacked_entries: REMEMBERED_ENTRIES as u32,
            max_unacked_bytes: self.ingest.options.max_unacked_bytes,
            max_entry_bytes: self.ingest.options.max_entry_bytes,
            applied_entry_seq: self
                .lane
                .look(|state| state.standing().map_or(0, |standing| standing.applied_seq)),
        }
    }

    /// Whether everything that this stream published is acknowledged.
    fn is_settled(&self) -> bool {
        self.marks.borrow().published <= self.acked.load(Ordering::Acquire)
    }
}

impl Drop for PartsStream {
    fn drop(&mut self) {
        self.lane.abandon(self.owner);
    }
}
