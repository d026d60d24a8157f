//! The calls that the tests make, with bounds.

use std::time::Instant;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tonic::Status;
use wakelog_client::{Connection, Error, ReceivedBody, Writer, WriterOptions, new_nonce, receive_body};
use wakelog_model::WriterNonce;
use wakelog_proto::v1::{
    AckLevel, AttachWriterRequest, DescribeSessionRequest, DescribeSessionResponse, EraseSessionRequest,
    ExportSessionRequest, LifetimeGrant, OpenSessionRequest, SessionsResponse, StartAgentSessionRequest,
    StopAgentSessionRequest,
};

use super::{PATIENCE, within};

/// Opens a session; the request id makes it the same one again.
pub async fn open(connection: &Connection, request_id: &str) -> String {
    let request = OpenSessionRequest {
        request_id: request_id.to_owned(),
        ..Default::default()
    };
    let opened = within("opening a session", connection.sessions().open_session(request)).await;
    opened.expect("the session opens").into_inner().session_id
}

/// Opens a session below another one.
pub async fn open_below(connection: &Connection, parent: &str, request_id: &str) -> String {
    let request = OpenSessionRequest {
        request_id: request_id.to_owned(),
        parent_session_id: parent.to_owned(),
        subpath: request_id.to_owned(),
        ..Default::default()
    };
    let opened = within("opening a session", connection.sessions().open_session(request)).await;
    opened.expect("the session opens").into_inner().session_id
}

/// Erases a session.
pub async fn erase(connection: &Connection, session: &str) -> Result<(), Status> {
    let request = EraseSessionRequest {
        session_id: session.to_owned(),
    };
    within("an erasure", connection.sessions().erase_session(request)).await?;
    Ok(())
}

/// Opens a session on `partition`: tries names until one lands there.
pub async fn open_on(connection: &Connection, name: &str, partition: i32) -> String {
    let deadline = Instant::now() + PATIENCE;
    for number in 0.. {
        let request = OpenSessionRequest {
            request_id: format!("{name}-{number}"),
            ..Default::default()
        };
        let opened = within("opening a session", connection.sessions().open_session(request)).await;
        let opened = opened.expect("the session opens").into_inner();
        if opened.partition == partition {
            return opened.session_id;
        }
        assert!(
            Instant::now() < deadline,
            "no session landed on partition {partition}"
        );
    }
    unreachable!("numbers do not end")
}

/// Attaches a writer to a new session.
pub async fn attach_first(
    connection: &Connection,
    session: &str,
    nonce: WriterNonce,
) -> Result<LifetimeGrant, Status> {
    attach(connection, session, nonce, Bytes::new(), false).await
}

/// Attaches a writer after `last_lifetime`, or over whatever is current.
pub async fn attach(
    connection: &Connection,
    session: &str,
    nonce: WriterNonce,
    last_lifetime: Bytes,
    take_over: bool,
) -> Result<LifetimeGrant, Status> {
    let request = AttachWriterRequest {
        session_id: session.to_owned(),
        writer_nonce: nonce.as_bytes().to_vec().into(),
        last_lifetime_id: last_lifetime,
        take_over,
    };
    let attached = within("attaching a writer", connection.sessions().attach_writer(request)).await?;
    Ok(attached.into_inner().lifetime.expect("a lifetime"))
}

/// A writer in `lifetime`.
pub async fn writer(
    connection: &Connection,
    lifetime: &LifetimeGrant,
    nonce: WriterNonce,
    ack_level: AckLevel,
) -> Result<Writer, Error> {
    let options = WriterOptions {
        ack_level,
        ..WriterOptions::default()
    };
    within(
        "opening a writer",
        Writer::open(connection.relays(), lifetime.clone(), nonce, options),
    )
    .await
}

/// Opens a session and attaches its first writer.
pub async fn open_and_attach(
    connection: &Connection,
    request_id: &str,
    ack_level: AckLevel,
) -> (LifetimeGrant, Writer) {
    let session = open(connection, request_id).await;
    let nonce = new_nonce();
    let lifetime = attach_first(connection, &session, nonce)
        .await
        .expect("the first writer attaches");
    let writer = writer(connection, &lifetime, nonce, ack_level)
        .await
        .expect("the writer opens");
    (lifetime, writer)
}

/// Resumes a session and receives its body.
pub async fn resume(
    connection: &Connection,
    session: &str,
    request_id: &str,
) -> Result<(LifetimeGrant, Vec<u8>), Error> {
    let resuming = begin_resume(connection, session, request_id).await?;
    let lifetime = resuming.lifetime.clone();
    let body = within("a resume", resuming.body(std::future::ready(()))).await?;
    Ok((lifetime, body))
}

/// A resume whose lifetime is bound, and whose body is still to be read.
pub struct Resuming {
    pub lifetime: LifetimeGrant,
    answer: tonic::Streaming<SessionsResponse>,
}

/// Resumes a session, and reads nothing of its body.
pub async fn begin_resume(
    connection: &Connection,
    session: &str,
    request_id: &str,
) -> Result<Resuming, Error> {
    let request = StartAgentSessionRequest {
        container_name: "a test".to_owned(),
        resume_session_id: session.to_owned(),
        request_id: request_id.to_owned(),
        ..Default::default()
    };
    let begin = async {
        let mut answer = connection
            .sessions()
            .start_agent_session(request)
            .await?
            .into_inner();
        let first = answer.message().await?.expect("a first message");
        let lifetime = first.lifetime.expect("a lifetime");
        Ok(Resuming { lifetime, answer })
    };
    within("the bind of a resume", begin).await
}

impl Resuming {
    /// Receives the body: its first chunk, and the others once `go_on` is over.
    pub async fn body(self, go_on: impl Future<Output = ()>) -> Result<Vec<u8>, Error> {
        let mut answer = self.answer;
        let first = answer.message().await?.expect("a body");
        go_on.await;
        let chunks = stream::iter([Ok(first)])
            .chain(answer)
            .map_ok(|message| message.resume_body.expect("a chunk"));
        let mut body = Vec::new();
        receive_body(chunks, &mut body).await?;
        Ok(body)
    }
}

/// Exports a session.
pub async fn export(connection: &Connection, session: &str) -> Result<(ReceivedBody, Vec<u8>), Error> {
    let request = ExportSessionRequest {
        session_id: session.to_owned(),
    };
    let receive = async {
        let answer = connection.sessions().export_session(request).await?.into_inner();
        let chunks = answer.map_ok(|message| message.resume_body.expect("a body"));
        let mut body = Vec::new();
        let received = receive_body(chunks, &mut body).await?;
        Ok((received, body))
    };
    within("an export", receive).await
}

/// Ends a lifetime.
pub async fn stop(connection: &Connection, lifetime: &LifetimeGrant) -> Result<u64, Status> {
    let request = StopAgentSessionRequest {
        session_id: lifetime.session_id.clone(),
        lifetime_id: lifetime.lifetime_id.clone(),
    };
    let stopped = within(
        "ending a lifetime",
        connection.sessions().stop_agent_session(request),
    )
    .await?;
    Ok(stopped.into_inner().last_entry_seq)
}

/// Describes a session.
pub async fn describe(connection: &Connection, session: &str) -> Result<DescribeSessionResponse, Status> {
    let request = DescribeSessionRequest {
        session_id: session.to_owned(),
    };
    let described = within(
        "describing a session",
        connection.sessions().describe_session(request),
    )
    .await?;
    Ok(described.into_inner())
}
