//! `wakelog tail`: a session's entries as they are applied.

use std::io::Write as _;
use std::ops::ControlFlow;

use serde_json::{Value, json};
use wakelog_contract::Exit;
use wakelog_proto::v1::TailSessionResponse;

use super::entries::Entries;
use super::{connect, session_id};
use crate::args::TailArgs;
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{print_json, settle};

pub(crate) async fn run(settings: &Settings, args: &TailArgs) -> Result<Exit, Error> {
    let session_id = session_id(&args.session)?;
    let connection = connect(settings).await?;
    let entries = Entries {
        session_id: &session_id,
        from: args.from,
        follow: args.follow,
    };
    let mut lengths = EntryLengths::default();
    let print = |part: &TailSessionResponse| {
        if !args.json {
            print_bytes(&part.content)?;
        } else if let Some(described) = lengths.describe(part) {
            print_json(&described)?;
        }
        Ok(ControlFlow::Continue(()))
    };
    entries.read(&connection, print).await?;
    Ok(Exit::Done)
}

/// Prints bytes as they are.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    settle(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// Counts the bytes of an entry that comes in parts.
#[derive(Debug, Default)]
pub(crate) struct EntryLengths {
    length: u64,
}

impl EntryLengths {
    /// With its last part the entry is described, without its bytes.
    pub(crate) fn describe(&mut self, part: &TailSessionResponse) -> Option<Value> {
        self.length += part.content.len() as u64;
        if !part.last {
            return None;
        }
        let length = std::mem::take(&mut self.length);
        Some(json!({
            "entry_seq": part.entry_seq,
            "checkpoint": part.checkpoint,
            "length": length,
        }))
    }
}
