//! One file per command of a user, and what they share: reaching the server, short retries, the writer's memory.

pub(crate) mod append;
pub(crate) mod bench;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod entries;
pub(crate) mod erase;
pub(crate) mod export;
pub(crate) mod fork;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod migrate;
pub(crate) mod received_file;
pub(crate) mod resume;
pub(crate) mod segments;
pub(crate) mod sessions;
pub(crate) mod tail;
pub(crate) mod verify;
pub(crate) mod writer_state;

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;
use tonic::{Code, Response, Status};
use wakelog_client::{Backoff, Connection, Writer, WriterOptions};
use wakelog_model::{SessionId, WriterNonce};
use wakelog_proto::v1::{AckLevel, LifetimeGrant};

use crate::config::Settings;
use crate::discovery;
use crate::exit::Error;

/// Where a server is looked for if nothing says otherwise.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:7420";

/// How long one call may take. Longer than a service waits for a bind to be applied.
const CALL_TIMEOUT: Duration = Duration::from_secs(45);

/// For how long a call is tried again while the server says that it can't answer now.
const RETRY_FOR: Duration = Duration::from_secs(30);

/// A server and the caller token for it, as configured or as `up` announced it.
pub(crate) struct Target {
    pub(crate) server: String,
    pub(crate) token: Option<String>,
}

impl Target {
    pub(crate) fn find(settings: &Settings) -> Result<Self, Error> {
        // What is named goes before what is announced, and an announced token is for the announced server only.
        let announced = match &settings.server {
            Some(server) => discovery::find()
                .ok()
                .flatten()
                .filter(|announced| announced.endpoint == *server),
            None => discovery::find()?,
        };
        let server = settings
            .server
            .clone()
            .or_else(|| announced.as_ref().map(|announced| announced.endpoint.clone()))
            .unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let token = match (&settings.token, &settings.token_file, &announced) {
            (Some(token), _, _) => Some(token.0.clone()),
            (None, Some(path), _) => Some(token_of_file(path)?),
            (None, None, Some(announced)) => Some(token_of_file(&announced.caller_token_file)?),
            (None, None, None) => None,
        };
        Ok(Self { server, token })
    }

    pub(crate) async fn connect(self) -> Result<Connection, Error> {
        let connection = Connection::connect_any(&self.server, self.token).await;
        connection.map_err(|error| Error::from(error).or_hint("name the server with --server"))
    }
}

/// Connects to the server that the settings name.
pub(crate) async fn connect(settings: &Settings) -> Result<Connection, Error> {
    Target::find(settings)?.connect().await
}

/// The same for a command that writes. That no relay can be reached is said before anything is opened or bound: a writer
/// would try for minutes, and leave a session that holds nothing.
pub(crate) async fn connect_to_write(settings: &Settings) -> Result<Connection, Error> {
    let connection = with_relays(settings, connect(settings).await?)?;
    let mut first_error = None;
    for (_, checked) in connection.check_relays().await {
        match checked {
            Ok(()) => return Ok(connection),
            Err(error) => first_error.get_or_insert(error),
        };
    }
    let error = first_error.ok_or_else(|| Error::usage("no relay is named"))?;
    Err(Error::from(error).while_doing("no relay"))
}

/// The connection with the relays that the settings name, if they do.
pub(crate) fn with_relays(settings: &Settings, connection: Connection) -> Result<Connection, Error> {
    match &settings.relay {
        Some(relays) => Ok(connection.with_relays(relays)?),
        None => Ok(connection),
    }
}

/// Opens a writer whose entries count once they are folded: what is reported can be resumed.
pub(crate) async fn open_writer(
    connection: &Connection,
    grant: LifetimeGrant,
    nonce: WriterNonce,
) -> Result<Writer, Error> {
    let options = WriterOptions {
        ack_level: AckLevel::Store,
        ..WriterOptions::default()
    };
    Ok(Writer::open(connection.relays(), grant, nonce, options).await?)
}

/// The token in a token file: the last word of its first line that is not a comment, so that both a bare token and a line
/// `account token` will do.
pub(crate) fn token_of_file(path: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::usage(format!("token file {}: {error}", path.display())))?;
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .and_then(|line| line.split_whitespace().next_back())
        .map(str::to_owned)
        .ok_or_else(|| Error::usage(format!("token file {} holds no token", path.display())))
}

/// Checks a session id before anything is sent.
pub(crate) fn session_id(text: &str) -> Result<String, Error> {
    let id: SessionId = text
        .parse()
        .map_err(|error: wakelog_model::Error| Error::usage(error.to_string()))?;
    Ok(id.to_string())
}

/// Makes a call, again while the server says that it can't answer now. Only for calls that may be repeated.
pub(crate) async fn call<T, F>(what: &str, mut attempt: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<Response<T>, Status>>,
{
    let started = Instant::now();
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(3));
    loop {
        let status = match tokio::time::timeout(CALL_TIMEOUT, attempt()).await {
            Ok(Ok(response)) => return Ok(response.into_inner()),
            Ok(Err(status)) => status,
            Err(_) => Status::unavailable(format!("no answer within {CALL_TIMEOUT:?}")),
        };
        // A connection that broke is reported as unknown.
        let may_pass = matches!(
            status.code(),
            Code::Unavailable | Code::ResourceExhausted | Code::Unknown
        );
        let asked = wakelog_contract::refusal_of(&status).map_or(0, |refusal| refusal.retry_delay_ms);
        let delay = backoff.next_delay().max(Duration::from_millis(asked));
        if !may_pass || started.elapsed() + delay > RETRY_FOR {
            return Err(Error::from(status).while_doing(what));
        }
        tracing::info!(
            what,
            delay_ms = delay.as_millis() as u64,
            reason = status.message(),
            "trying again"
        );
        tokio::time::sleep(delay).await;
    }
}

/// What is wrong if a message lacks what the protocol promises.
pub(crate) fn incomplete(what: &str) -> Error {
    Error::from(wakelog_client::Error::Protocol(format!("{what} is missing")))
}

#[cfg(test)]
mod tests;
