//! One pipelined stream to the relay: opened, used until it breaks, thrown away.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use wakelog_proto::v1::commit_conversation_parts_request::Message as RequestMessage;
use wakelog_proto::v1::commit_conversation_parts_response::Message as ResponseMessage;
use wakelog_proto::v1::relay_service_client::RelayServiceClient;
use wakelog_proto::v1::{
    CommitConversationPartsRequest, CommitConversationPartsResponse, EntriesAcked, StreamAccepted,
    WriterHello,
};

use super::held::{HeldEntry, Outgoing};
use crate::Error;
use crate::connection::Bearer;

/// Parts that may wait for the transport: enough to keep it busy, small enough to be flat.
const PARTS_IN_CHANNEL: usize = 4;

/// Why a stream is of no use any more.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The server said why.
    Status(Status),
    /// The connection, or what came over it.
    Lost(String),
    /// Something that another stream would not change.
    Final(Error),
}

/// An open stream.
pub(crate) struct Link {
    requests: mpsc::Sender<CommitConversationPartsRequest>,
    responses: Streaming<CommitConversationPartsResponse>,
    /// The next entry to send on this stream.
    pub(crate) next_entry_seq: u64,
    outgoing: Option<Outgoing>,
}

impl Link {
    /// Opens a stream and waits until it is accepted.
    pub(crate) async fn open(
        channel: Channel,
        bearer: Bearer,
        hello: WriterHello,
        next_entry_seq: u64,
        silence: Duration,
    ) -> Result<(Self, StreamAccepted), Broken> {
        let (requests, receiver) = mpsc::channel(PARTS_IN_CHANNEL);
        let hello = CommitConversationPartsRequest {
            message: Some(RequestMessage::Hello(hello)),
        };
        requests
            .try_send(hello)
            .map_err(|_| Broken::Lost("the stream took no hello".to_owned()))?;
        let mut relay = RelayServiceClient::with_interceptor(channel, bearer);
        let opening = async {
            let mut responses = relay
                .commit_conversation_parts(ReceiverStream::new(receiver))
                .await?
                .into_inner();
            let first = responses.message().await?;
            Ok((responses, first))
        };
        let opened: Result<_, Status> = timeout(silence, opening)
            .await
            .map_err(|_| Broken::Lost("no answer to the hello".to_owned()))?;
        let (responses, first) = opened.map_err(Broken::Status)?;
        match first.and_then(|response| response.message) {
            Some(ResponseMessage::Accepted(accepted)) => Ok((
                Self {
                    requests,
                    responses,
                    next_entry_seq,
                    outgoing: None,
                },
                accepted,
            )),
            Some(ResponseMessage::Acked(_)) => {
                Err(protocol("the first message of a stream is not its acceptance"))
            }
            None => Err(Broken::Lost("the stream ended before it was accepted".to_owned())),
        }
    }

    /// Sends the next part, or takes the next acknowledgement, whichever comes first. Cancelling it loses nothing.
    pub(crate) async fn step(
        &mut self,
        held: &mut VecDeque<HeldEntry>,
        silence: Duration,
    ) -> Result<Option<EntriesAcked>, Broken> {
        let next_entry_seq = self.next_entry_seq;
        let unsent = held
            .front()
            .map(|front| front.entry_seq)
            .and_then(|front| next_entry_seq.checked_sub(front))
            .and_then(|index| held.get_mut(index as usize));
        let Some(entry) = unsent else {
            let message = timeout(silence, self.responses.message()).await;
            return read_ack(message.map_err(|_| silent(silence))?);
        };
        let room = tokio::select! {
            biased;
            message = self.responses.message() => return read_ack(message),
            room = self.requests.clone().reserve_owned() => room,
            () = tokio::time::sleep(silence) => return Err(silent(silence)),
        };
        let Ok(room) = room else {
            return Err(self.why_closed(silence).await);
        };
        let outgoing = match &mut self.outgoing {
            Some(outgoing) => outgoing,
            none => none.insert(entry.start().map_err(Broken::Final)?),
        };
        let part = entry.next_part(outgoing).await.map_err(Broken::Final)?;
        if part.last {
            self.outgoing = None;
            self.next_entry_seq += 1;
        }
        room.send(CommitConversationPartsRequest {
            message: Some(RequestMessage::Part(part)),
        });
        Ok(None)
    }

    /// Takes an acknowledgement that is already there.
    pub(crate) fn ready_ack(&mut self) -> Option<Result<Option<EntriesAcked>, Broken>> {
        use futures::FutureExt as _;
        self.responses.message().now_or_never().map(read_ack)
    }

    /// The server took no more parts; its status says why.
    async fn why_closed(&mut self, silence: Duration) -> Broken {
        match timeout(silence, self.responses.message()).await {
            Ok(Err(status)) => Broken::Status(status),
            _ => Broken::Lost("the server closed the stream".to_owned()),
        }
    }
}

fn read_ack(
    message: Result<Option<CommitConversationPartsResponse>, Status>,
) -> Result<Option<EntriesAcked>, Broken> {
    match message.map_err(Broken::Status)?.map(|response| response.message) {
        Some(Some(ResponseMessage::Acked(acked))) => Ok(Some(acked)),
        Some(Some(ResponseMessage::Accepted(_))) => Err(protocol("a stream was accepted twice")),
        // A message of a later version of the protocol.
        Some(None) => Ok(None),
        None => Err(Broken::Status(Status::new(
            Code::Unavailable,
            "the server ended the stream",
        ))),
    }
}

fn silent(silence: Duration) -> Broken {
    Broken::Lost(format!("the server said nothing for {silence:?}"))
}

fn protocol(what: &str) -> Broken {
    Broken::Final(Error::Protocol(what.to_owned()))
}
