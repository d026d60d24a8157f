//! The gRPC services, and their start and end.

use std::sync::Arc;

use tokio::time::{Duration, Instant, sleep};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};
use wakelog_contract::TokenSigner;
use wakelog_proto::v1::agent_gateway_service_server::{AgentGatewayService, AgentGatewayServiceServer};
use wakelog_proto::v1::relay_service_server::{RelayService, RelayServiceServer};
use wakelog_proto::v1::{
    AckLevel, CommitConversationFrameRequest, CommitConversationFrameResponse,
    CommitConversationPartsRequest, PostConversationFrameRequest, PostConversationFrameResponse,
};
use wakelog_store::Store;
use wakelog_stream::{LogReader, Producer};

use crate::ack::Level;
use crate::auth::authenticate;
use crate::ingest::Ingest;
use crate::unary::UnaryCommit;
use crate::{Error, Options, metrics, parts_stream, watcher};

/// The largest message: an entry of 4 MiB and what is around it. Larger ones are refused before they are read.
const MAX_MESSAGE_BYTES: usize = 5 * 1024 * 1024;

/// How often a shutdown looks whether everything is acknowledged.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The relay's server half.
///
/// Its gRPC services work as soon as they are mounted; `STORE` acks and barriers need [`Service::run`].
pub struct Service {
    ingest: Arc<Ingest>,
}

impl Service {
    /// Makes the service. Nothing is connected to that the given clients are not connected to already.
    pub fn new(
        options: Options,
        store: Store,
        producer: Producer,
        reader: LogReader,
        signer: TokenSigner,
    ) -> Result<Self, Error> {
        options.validate()?;
        Ok(Self {
            ingest: Arc::new(Ingest::new(options, store, producer, reader, signer)),
        })
    }

    /// Both gRPC services. Whoever owns the listener sets http2 keepalive: it is what ends the stream of a writer that
    /// vanished.
    pub fn router_parts(&self) -> (RelayServiceServer<Relay>, AgentGatewayServiceServer<AgentGateway>) {
        (self.relay_server(), self.agent_gateway_server())
    }

    /// The relay service.
    pub fn relay_server(&self) -> RelayServiceServer<Relay> {
        let relay = Relay {
            ingest: Arc::clone(&self.ingest),
        };
        RelayServiceServer::new(relay).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// The agent's gateway service, for agents that reach the relay directly.
    pub fn agent_gateway_server(&self) -> AgentGatewayServiceServer<AgentGateway> {
        let gateway = AgentGateway {
            ingest: Arc::clone(&self.ingest),
        };
        AgentGatewayServiceServer::new(gateway).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Reads fences and progress until `shutdown`, then drains: new calls are refused, and what is published gets its
    /// ack, within a bound. The listener must stay up until this returns.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        crate::metrics::begin();
        let ingest = self.ingest;
        let stop = CancellationToken::new();
        let mut watching = tokio::spawn(watcher::watch(Arc::clone(&ingest), stop.clone()));
        tokio::select! {
            () = shutdown.cancelled() => {}
            died = &mut watching => {
                let reason = died.err().map_or_else(|| "it returned".to_owned(), |error| error.to_string());
                ingest.draining.cancel();
                ingest.closing.cancel();
                return Err(Error::WatcherDied { reason });
            }
        }
        ingest.draining.cancel();
        let drained = drain(&ingest).await;
        ingest.closing.cancel();
        stop.cancel();
        watching.await.map_err(|error| Error::WatcherDied {
            reason: error.to_string(),
        })?;
        drained
    }
}

async fn drain(ingest: &Ingest) -> Result<(), Error> {
    let started = Instant::now();
    loop {
        let (unacked_entries, open_calls) = (ingest.lanes.unacked_entries(), ingest.open_calls());
        if unacked_entries == 0 && open_calls == 0 {
            tracing::info!(took = ?started.elapsed(), "ingest drained");
            return Ok(());
        }
        if started.elapsed() >= ingest.options.drain_wait {
            tracing::warn!(unacked_entries, open_calls, "ingest did not drain in time");
            return Err(Error::DrainTimedOut {
                unacked_entries,
                open_calls,
            });
        }
        sleep(DRAIN_CHECK_INTERVAL).await;
    }
}

/// Serves `wakelog.v1.RelayService`.
pub struct Relay {
    ingest: Arc<Ingest>,
}

#[tonic::async_trait]
impl RelayService for Relay {
    type CommitConversationPartsStream = parts_stream::Responses;

    async fn commit_conversation_frame(
        &self,
        request: Request<CommitConversationFrameRequest>,
    ) -> Result<Response<CommitConversationFrameResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let commit = UnaryCommit {
            session_id: Some(request.session_id),
            idempotency_key: request.idempotency_key,
            frame: request.frame,
            ack_level: request.ack_level,
        };
        let committed = Box::pin(self.ingest.commit_unary(&metadata, commit)).await;
        let (acked_entry_seq, level) = committed.inspect_err(metrics::refusal)?;
        let response = CommitConversationFrameResponse {
            acked_entry_seq,
            ack_level: wire(level).into(),
        };
        Ok(Response::new(response))
    }

    async fn commit_conversation_parts(
        &self,
        request: Request<Streaming<CommitConversationPartsRequest>>,
    ) -> Result<Response<Self::CommitConversationPartsStream>, Status> {
        let call = self.ingest.open_call().inspect_err(metrics::refusal)?;
        let identity = authenticate(&self.ingest.signer, request.metadata()).inspect_err(metrics::refusal)?;
        let ingest = Arc::clone(&self.ingest);
        Ok(Response::new(parts_stream::serve(
            ingest,
            call,
            identity,
            request.into_inner(),
        )))
    }
}

/// Serves `wakelog.v1.AgentGatewayService`: the unary commit, with the session that the token names.
pub struct AgentGateway {
    ingest: Arc<Ingest>,
}

#[tonic::async_trait]
impl AgentGatewayService for AgentGateway {
    async fn post_conversation_frame(
        &self,
        request: Request<PostConversationFrameRequest>,
    ) -> Result<Response<PostConversationFrameResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let commit = UnaryCommit {
            session_id: None,
            idempotency_key: request.idempotency_key,
            frame: request.frame,
            ack_level: request.ack_level,
        };
        let committed = Box::pin(self.ingest.commit_unary(&metadata, commit)).await;
        let (acked_entry_seq, level) = committed.inspect_err(metrics::refusal)?;
        let response = PostConversationFrameResponse {
            acked_entry_seq,
            ack_level: wire(level).into(),
        };
        Ok(Response::new(response))
    }
}

fn wire(level: Level) -> AckLevel {
    match level {
        Level::Log => AckLevel::Log,
        Level::Store => AckLevel::Store,
    }
}
