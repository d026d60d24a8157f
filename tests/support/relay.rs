//! Calls of the durable lane that no client would make: every field is the test's.

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use tonic::{Request, Status};
use wakelog_client::Connection;
use wakelog_model::WriterNonce;
use wakelog_proto::v1::agent_frame::Frame;
use wakelog_proto::v1::agent_gateway_service_client::AgentGatewayServiceClient;
use wakelog_proto::v1::commit_conversation_parts_request::Message;
use wakelog_proto::v1::commit_conversation_parts_response::Message as Answer;
use wakelog_proto::v1::relay_service_client::RelayServiceClient;
use wakelog_proto::v1::sessions_service_client::SessionsServiceClient;
use wakelog_proto::v1::{
    AckLevel, AgentFrame, CommitConversationFrameRequest, CommitConversationPartsRequest, LifetimeGrant,
    PostConversationFrameRequest, RenewLifetimeTokenRequest, TranscriptEntry, TranscriptPart, WriterHello,
};

use super::within;

/// Plain bytes of every part of an entry but its last, by the contract.
pub const PART_BYTES: usize = 512 * 1024;

/// What an acknowledgement said.
pub type Acked = (u64, AckLevel);

/// A frame that is as it should be.
pub fn frame(
    session: &str,
    nonce: WriterNonce,
    entry_seq: u64,
    entry: &[u8],
) -> CommitConversationFrameRequest {
    let entry = TranscriptEntry {
        entry: Bytes::copy_from_slice(entry),
        checkpoint: false,
        entry_seq,
    };
    CommitConversationFrameRequest {
        session_id: session.to_owned(),
        idempotency_key: format!("{}-{entry_seq}", hex::encode(nonce.as_bytes())),
        frame: Some(AgentFrame {
            frame: Some(Frame::TranscriptEntry(entry)),
        }),
        ack_level: AckLevel::Store.into(),
    }
}

/// The entry of a frame.
pub fn entry_of(frame: &mut CommitConversationFrameRequest) -> &mut TranscriptEntry {
    match frame.frame.as_mut().and_then(|frame| frame.frame.as_mut()) {
        Some(Frame::TranscriptEntry(entry)) => entry,
        other => panic!("no entry but {other:?}"),
    }
}

/// `CommitConversationFrame`.
pub async fn commit(
    connection: &Connection,
    token: Option<&str>,
    frame: &CommitConversationFrameRequest,
) -> Result<Acked, Status> {
    let mut relay = RelayServiceClient::new(connection.relay_channel());
    let call = relay.commit_conversation_frame(with_token(frame.clone(), token));
    let answer = within("a commit", call).await?.into_inner();
    Ok((answer.acked_entry_seq, answer.ack_level()))
}

/// `PostConversationFrame` of the same frame.
pub async fn post(
    connection: &Connection,
    token: Option<&str>,
    frame: &CommitConversationFrameRequest,
) -> Result<Acked, Status> {
    let mut gateway = AgentGatewayServiceClient::new(connection.relay_channel());
    let CommitConversationFrameRequest {
        idempotency_key,
        frame,
        ack_level,
        ..
    } = frame.clone();
    let request = PostConversationFrameRequest {
        idempotency_key,
        frame,
        ack_level,
    };
    let answer = within(
        "a post",
        gateway.post_conversation_frame(with_token(request, token)),
    )
    .await?
    .into_inner();
    Ok((answer.acked_entry_seq, answer.ack_level()))
}

/// Sends messages and leaves the stream open: what is wrong with them must be answered at once.
pub async fn stream_left_open(
    connection: &Connection,
    token: Option<&str>,
    messages: Vec<Message>,
) -> Result<Acked, Status> {
    converse(connection, token, stream::iter(messages).chain(stream::pending())).await
}

/// Sends messages and half-closes the stream.
pub async fn stream_whole(
    connection: &Connection,
    token: Option<&str>,
    messages: Vec<Message>,
) -> Result<Acked, Status> {
    converse(connection, token, stream::iter(messages)).await
}

/// Reads the answers of a stream up to its end: the last acknowledgement, or the status.
async fn converse(
    connection: &Connection,
    token: Option<&str>,
    messages: impl Stream<Item = Message> + Send + 'static,
) -> Result<Acked, Status> {
    let mut relay = RelayServiceClient::new(connection.relay_channel());
    let messages = messages.map(|message| CommitConversationPartsRequest {
        message: Some(message),
    });
    let talk = async {
        let mut answers = relay
            .commit_conversation_parts(with_token(messages, token))
            .await?
            .into_inner();
        let mut acked = (0, AckLevel::Unspecified);
        while let Some(answer) = answers.message().await? {
            if let Some(Answer::Acked(entries)) = answer.message {
                acked = (entries.entry_seq, entries.ack_level());
            }
        }
        Ok(acked)
    };
    within("a stream", talk).await
}

/// `RenewLifetimeToken`.
pub async fn renew(connection: &Connection, token: Option<&str>) -> Result<LifetimeGrant, Status> {
    let mut sessions = SessionsServiceClient::new(connection.channel());
    let call = sessions.renew_lifetime_token(with_token(RenewLifetimeTokenRequest {}, token));
    Ok(within("a renewal", call)
        .await?
        .into_inner()
        .lifetime
        .expect("a lifetime"))
}

/// The first message of a stream.
pub fn hello(session: &str, nonce: WriterNonce) -> Message {
    Message::Hello(WriterHello {
        session_id: session.to_owned(),
        writer_nonce: Bytes::copy_from_slice(nonce.as_bytes()),
        ack_level: AckLevel::Store.into(),
    })
}

/// The parts of an entry, as they should be.
pub fn parts_of(entry_seq: u64, checkpoint: bool, entry: &[u8]) -> Vec<TranscriptPart> {
    let chunks: Vec<&[u8]> = entry.chunks(PART_BYTES).collect();
    let part_of = |(part, content): (usize, &&[u8])| TranscriptPart {
        entry_seq,
        part: part as u32,
        last: part + 1 == chunks.len(),
        checkpoint,
        content: Bytes::copy_from_slice(content),
    };
    chunks.iter().enumerate().map(part_of).collect()
}

/// A request with a token in its metadata.
pub fn with_token<T>(message: T, token: Option<&str>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(token) = token {
        let header = format!("Bearer {token}")
            .parse()
            .expect("a token that a header can carry");
        request.metadata_mut().insert("authorization", header);
    }
    request
}
