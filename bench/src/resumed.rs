//! Resuming a session, as a container does, and exporting one.

use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use wakelog_client::{Connection, new_nonce, receive_body};
use wakelog_proto::v1::{ExportSessionRequest, StartAgentSessionRequest};

use crate::Error;

/// What a resume took and gave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resumed {
    /// From the call to the first bytes of the body.
    pub(crate) first_byte: Duration,
    /// From the call to the checked body: length and SHA-256 are right.
    pub(crate) whole: Duration,
    /// Bytes of the body.
    pub(crate) length: u64,
}

/// Resumes the session and drops the bytes once they are checked.
pub(crate) async fn resume(connection: &Connection, session: &str) -> Result<Resumed, Error> {
    let request = StartAgentSessionRequest {
        container_name: "bench".to_owned(),
        resume_session_id: session.to_owned(),
        request_id: new_nonce().to_string(),
        ..StartAgentSessionRequest::default()
    };
    let mut sessions = connection.sessions();
    let started = Instant::now();
    let mut messages = sessions.start_agent_session(request).await?.into_inner();
    // The first message says what to start; the second is the first of the body.
    let nothing = || Error::Wrong("a resume ended before its body".to_owned());
    messages.message().await?.ok_or_else(nothing)?;
    let first = messages.message().await?.ok_or_else(nothing)?;
    let first_byte = started.elapsed();
    let first = first.resume_body.unwrap_or_default();
    let rest = messages.map_ok(|message| message.resume_body.unwrap_or_default());
    let chunks = futures::StreamExt::chain(futures::stream::iter([Ok(first)]), rest);
    let body = receive_body(chunks, tokio::io::sink()).await?;
    Ok(Resumed {
        first_byte,
        whole: started.elapsed(),
        length: body.length,
    })
}

/// Exports the session and drops the bytes once they are checked. Returns how long it took, and how many they were.
pub(crate) async fn export(connection: &Connection, session: &str) -> Result<(Duration, u64), Error> {
    let request = ExportSessionRequest {
        session_id: session.to_owned(),
    };
    let started = Instant::now();
    let messages = connection.sessions().export_session(request).await?.into_inner();
    let chunks = messages.map_ok(|message| message.resume_body.unwrap_or_default());
    let body = receive_body(chunks, tokio::io::sink()).await?;
    Ok((started.elapsed(), body.length))
}
