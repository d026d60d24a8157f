//! One file per command of a user, and what they share: reaching the server, short retries, the writer's memory and end.

pub(crate) mod append;
pub(crate) mod bench;
pub(crate) mod call;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod ending;
pub(crate) mod entries;
pub(crate) mod erase;
pub(crate) mod export;
pub(crate) mod fork;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod migrate;
pub(crate) mod received_file;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod segments;
pub(crate) mod sessions;
pub(crate) mod tail;
pub(crate) mod verify;
pub(crate) mod writer_state;

use std::collections::BTreeMap;
use std::path::Path;

use wakelog_client::{Connection, Writer, WriterOptions};
use wakelog_model::{SessionId, WriterNonce};
use wakelog_proto::v1::{AckLevel, LifetimeGrant, RefusalReason};

use crate::config::Settings;
use crate::discovery::{self, Announcement};
use crate::exit::Error;
pub(crate) use call::{call, call_any};

/// Where a server is looked for if nothing says otherwise.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:7420";

/// A server and the caller token for it, as configured or as `up` announced it.
pub(crate) struct Target {
    pub(crate) server: String,
    pub(crate) token: Option<String>,
}

impl Target {
    pub(crate) fn find(settings: &Settings) -> Result<Self, Error> {
        let announced = announced(settings)?;
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

/// The announcement of the server that is used. What is named goes before what is announced, and what an announcement says
/// is for the announced server only.
pub(crate) fn announced(settings: &Settings) -> Result<Option<Announcement>, Error> {
    match &settings.server {
        Some(server) => Ok(discovery::find()
            .ok()
            .flatten()
            .filter(|announced| announced.endpoint == *server)),
        None => discovery::find(),
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
    for (endpoint, checked) in connection.check_relays().await {
        match checked {
            Ok(()) => return Ok(connection),
            Err(error) => first_error.get_or_insert_with(|| relay_error(&endpoint, error)),
        };
    }
    let error = first_error.ok_or_else(|| Error::usage("no relay is named"))?;
    Err(error.while_doing("no relay"))
}

/// What is wrong with a relay, with its name.
pub(crate) fn relay_error(endpoint: &str, error: wakelog_client::Error) -> Error {
    let names_it = !matches!(error, wakelog_client::Error::NoGrpc { .. });
    match names_it {
        true => error.into(),
        false => Error::from(error).at(endpoint),
    }
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
    let opened = Writer::open(connection.relays(), grant, nonce, options).await;
    opened.map_err(writer_error)
}

/// What ended a writer. Its token is the lifetime's, which one service signs and another one checks.
pub(crate) fn writer_error(error: wakelog_client::Error) -> Error {
    Error::from(error).with_hint_on(
        RefusalReason::TokenForged,
        "`wakelog ingest` and `wakelog reconstruct` need the same --token-key-file",
    )
}

/// The labels of a command line. One that is given twice with different values would lose one of them.
pub(crate) fn labels_of(given: &[(String, String)]) -> Result<BTreeMap<String, String>, Error> {
    let mut labels = BTreeMap::new();
    for (key, value) in given {
        let earlier = labels.insert(key.clone(), value.clone());
        if let Some(earlier) = earlier.filter(|earlier| earlier != value) {
            return Err(Error::usage(format!(
                "--label {key} is given twice, as {earlier:?} and as {value:?}"
            )));
        }
    }
    Ok(labels)
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

/// What is wrong if a message lacks what the protocol promises.
pub(crate) fn incomplete(what: &str) -> Error {
    Error::from(wakelog_client::Error::Protocol(format!("{what} is missing")))
}

#[cfg(test)]
mod tests;
