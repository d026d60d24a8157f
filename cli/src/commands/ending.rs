//! How a writer's lifetime is ended once everything is acknowledged, and what is said if that fails.

use std::fmt;

use wakelog_client::Connection;
use wakelog_contract::Exit;
use wakelog_proto::v1::StopAgentSessionRequest;

use super::call_any;
use crate::exit::Error;

/// What a writer has had acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) entries: u64,
    /// Bytes of these entries.
    pub(crate) length: u64,
}

impl fmt::Display for Stored {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = if self.entries == 1 { "entry" } else { "entries" };
        write!(formatter, "{} {entries}, {} bytes", self.entries, self.length)
    }
}

/// Ends a lifetime whose writer has drained, at whichever server answers; returns the session's last complete entry.
pub(crate) async fn end_lifetime(
    connection: &Connection,
    session_id: &str,
    lifetime_id: &[u8],
    stored: Stored,
) -> Result<u64, Error> {
    let request = StopAgentSessionRequest {
        session_id: session_id.to_owned(),
        lifetime_id: lifetime_id.to_vec().into(),
    };
    let ended = call_any(connection, "ending the lifetime", |mut sessions| {
        let request = request.clone();
        async move { sessions.stop_agent_session(request).await }
    });
    let ended = ended.await.map_err(|error| {
        let all = format!("session {session_id} holds all that was sent ({stored})");
        match error.exit {
            Exit::Dependency => error
                .while_doing(format!("{all}, its lifetime was left open"))
                .with_hint("nothing has to be sent again; the next append or resume goes on from here"),
            _ => error.while_doing(all),
        }
    })?;
    Ok(ended.last_entry_seq)
}
