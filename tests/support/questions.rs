//! Everything that a caller can ask about a session.

use bytes::Bytes;
use tonic::Status;
use wakelog_client::{Connection, new_nonce};
use wakelog_proto::v1::{
    AttachWriterRequest, DescribeSessionRequest, ExportSessionRequest, OpenSessionRequest,
    StartAgentSessionRequest, StopAgentSessionRequest, TailSessionRequest,
};

use super::within;

/// Everything that names a session, asked about `session`: what each answers first.
pub async fn every_question(
    connection: &Connection,
    session: &str,
) -> Vec<(&'static str, Result<(), Status>)> {
    let mut sessions = connection.sessions();
    let session_id = session.to_owned();
    let attachment = |take_over, last_lifetime_id| AttachWriterRequest {
        session_id: session.to_owned(),
        writer_nonce: new_nonce().as_bytes().to_vec().into(),
        last_lifetime_id,
        take_over,
    };
    let start = StartAgentSessionRequest {
        resume_session_id: session_id.clone(),
        ..Default::default()
    };
    let tail = TailSessionRequest {
        session_id: session_id.clone(),
        ..Default::default()
    };
    let stop = |lifetime_id| StopAgentSessionRequest {
        session_id: session.to_owned(),
        lifetime_id,
    };
    let child = OpenSessionRequest {
        parent_session_id: session_id.clone(),
        ..Default::default()
    };
    let some_lifetime = Bytes::from_static(&[5; 16]);
    let ask = async {
        let describe = sessions
            .describe_session(DescribeSessionRequest {
                session_id: session_id.clone(),
            })
            .await;
        let export = match sessions.export_session(ExportSessionRequest { session_id }).await {
            Ok(answer) => answer.into_inner().message().await.map(drop),
            Err(status) => Err(status),
        };
        let tail = match sessions.tail_session(tail).await {
            Ok(answer) => answer.into_inner().message().await.map(drop),
            Err(status) => Err(status),
        };
        let resume = match sessions.start_agent_session(start).await {
            Ok(answer) => answer.into_inner().message().await.map(drop),
            Err(status) => Err(status),
        };
        let last = attachment(false, some_lifetime.clone());
        vec![
            ("describe", describe.map(drop)),
            ("export", export),
            ("tail", tail),
            ("resume", resume),
            (
                "attach",
                sessions
                    .attach_writer(attachment(false, Bytes::new()))
                    .await
                    .map(drop),
            ),
            (
                "attach after a lifetime",
                sessions.attach_writer(last).await.map(drop),
            ),
            (
                "take over",
                sessions
                    .attach_writer(attachment(true, Bytes::new()))
                    .await
                    .map(drop),
            ),
            (
                "stop",
                sessions.stop_agent_session(stop(Bytes::new())).await.map(drop),
            ),
            (
                "stop a lifetime",
                sessions.stop_agent_session(stop(some_lifetime)).await.map(drop),
            ),
            ("open below", sessions.open_session(child).await.map(drop)),
        ]
    };
    within("questions about a session", ask).await
}
