//! The demo's agent: a process of its own that plays recorded calls, keeps a local session file and tees every committed
//! write. It can be killed at any instruction, and it will be.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wakelog_client::{Connection, Writer, WriterOptions, new_nonce};
use wakelog_contract::Exit;
use wakelog_proto::v1::{AckLevel, LifetimeGrant};

use super::recording::Recording;
use crate::exit::Error;
use crate::output::print_json;

/// Longer than the demo lives: by then the agent has been killed.
const STUCK: Duration = Duration::from_secs(120);

/// What the agent is to do, as one JSON object on its standard input: the lifetime token must not be seen by `ps`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) endpoint: String,
    pub(crate) session_id: String,
    pub(crate) lifetime_token: String,
    /// The agent's session file. It is there already if the session was resumed.
    pub(crate) session_file: PathBuf,
    /// The first call to play.
    pub(crate) first_call: usize,
    /// The pause after each call.
    pub(crate) pause_ms: u64,
    /// The call after which the agent waits for a model that does not answer.
    pub(crate) stuck_after_call: Option<usize>,
}

/// One call that was played and acknowledged, as one JSON object on the standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Played {
    pub(crate) call: usize,
    pub(crate) name: String,
    pub(crate) bytes: usize,
    pub(crate) checkpoint: bool,
    pub(crate) entry_seq: u64,
    pub(crate) ack_level: String,
}

/// Plays the calls from `first_call` on: commits each to the local file, sends it, waits for its acknowledgement.
pub(crate) async fn run() -> Result<Exit, Error> {
    let orders: Orders = serde_json::from_reader(std::io::stdin())
        .map_err(|error| Error::usage(format!("the agent's orders are not readable: {error}")))?;
    let recording = Recording::load().map_err(|error| Error::failed(error.to_string()))?;
    let mut file = match std::fs::read(&orders.session_file) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(Error::io(orders.session_file.display(), &error)),
    };
    let connection = Connection::connect(&orders.endpoint, None).await?;
    let grant = LifetimeGrant {
        session_id: orders.session_id,
        token: orders.lifetime_token,
        ..LifetimeGrant::default()
    };
    let options = WriterOptions {
        give_up_after: Duration::from_secs(20),
        ..WriterOptions::default()
    };
    let mut writer = Writer::open(connection.relays(), grant, new_nonce(), options).await?;
    for (number, call) in recording.calls().iter().enumerate().skip(orders.first_call) {
        let entry = call
            .commit(number, &mut file)
            .map_err(|error| Error::failed(error.to_string()))?;
        std::fs::write(&orders.session_file, &file)
            .map_err(|error| Error::io(orders.session_file.display(), &error))?;
        let (bytes, checkpoint) = (entry.bytes.len(), entry.checkpoint);
        let entry_seq = writer.append(entry.bytes, checkpoint).await?;
        let acked = writer.drain().await?;
        let played = Played {
            call: number,
            name: call.name().to_owned(),
            bytes,
            checkpoint,
            entry_seq,
            ack_level: name_of(acked.ack_level).to_owned(),
        };
        print_json(&serde_json::to_value(played).map_err(|error| Error::failed(error.to_string()))?)?;
        if orders.stuck_after_call == Some(number) {
            tokio::time::sleep(STUCK).await;
        }
        tokio::time::sleep(Duration::from_millis(orders.pause_ms)).await;
    }
    Ok(Exit::Done)
}

fn name_of(level: AckLevel) -> &'static str {
    match level {
        AckLevel::Store => "store",
        AckLevel::Log | AckLevel::Unspecified => "log",
    }
}
