//! `wakelog append`: each line one entry, byte for byte.

use std::path::Path;

use bytes::Bytes;
use serde_json::json;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use wakelog_client::{Connection, Writer};
use wakelog_contract::Exit;

use super::ending::{Stored, end_lifetime};
use super::writer_state::WriterState;
use super::{connect_to_write, open_writer, session_id, writer_error};
use crate::args::AppendArgs;
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{print, print_json};
use crate::services::signals;

pub(crate) async fn run(settings: &Settings, args: &AppendArgs) -> Result<Exit, Error> {
    let session_id = session_id(&args.session)?;
    let mut lines = open(&args.file).await?;
    let stop = signals::shutdown_token()?;
    let Attached {
        connection,
        state: _locked,
        lifetime_id,
        mut writer,
    } = tokio::select! {
        attached = Box::pin(attach(settings, args, &session_id)) => attached?,
        () = stop.cancelled() => return Err(Error::failed("interrupted, nothing was appended")),
    };
    let mut stored = Stored::default();
    let limit = writer.max_entry_bytes();
    // Whatever ends the reading, what was read is still sent and drained.
    let cut_short = loop {
        let line = tokio::select! {
            biased;
            () = stop.cancelled() => break Some(Error::failed("interrupted")),
            line = next_line(&mut lines, limit) => line,
        };
        let line = match line {
            Ok(Some(line)) => line,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        let length = line.len() as u64;
        writer.append(line, false).await.map_err(writer_error)?;
        stored.entries += 1;
        stored.length += length;
    };
    writer.drain().await.map_err(writer_error)?;
    let ended = end_lifetime(&connection, &session_id, &lifetime_id, stored).await;
    let last_entry_seq = match (ended, &cut_short) {
        (Err(error), Some(cause)) => return Err(error.while_doing(cause)),
        (ended, _) => ended?,
    };
    if args.json {
        print_json(&json!({
            "session_id": session_id,
            "entries": stored.entries,
            "length": stored.length,
            "last_entry_seq": last_entry_seq,
        }))?;
    } else {
        print(&format!("{stored} appended\n"))?;
    }
    match cut_short {
        None => Ok(Exit::Done),
        Some(error) => Err(error.while_doing(format!("{stored} were appended, the rest was not"))),
    }
}

/// A writer of the session, and what it needs to end.
struct Attached {
    connection: Connection,
    /// Nobody else on this machine writes to the session meanwhile.
    state: WriterState,
    lifetime_id: Bytes,
    writer: Writer,
}

async fn attach(settings: &Settings, args: &AppendArgs, session_id: &str) -> Result<Attached, Error> {
    let connection = connect_to_write(settings).await?;
    let mut state = WriterState::open(session_id)?;
    let (grant, nonce) = state.attach(&connection, args.take_over).await.map_err(|error| {
        error.or_hint(
            "only who wrote to a session last may append to it; --take-over takes it over on purpose",
        )
    })?;
    let lifetime_id = grant.lifetime_id.clone();
    let writer = open_writer(&connection, grant, nonce).await?;
    Ok(Attached {
        connection,
        state,
        lifetime_id,
        writer,
    })
}

async fn open(path: &Path) -> Result<Box<dyn AsyncBufRead + Unpin + Send>, Error> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(tokio::io::stdin())));
    }
    let file = tokio::fs::File::open(path)
        .await
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::new(Exit::NotFound, format!("{} does not exist", path.display()))
            }
            _ => Error::io(path.display(), &error),
        })?;
    Ok(Box::new(BufReader::new(file)))
}

/// The next line with its newline. Only the byte 0x0A ends one: no other byte means anything here.
async fn next_line(lines: &mut (impl AsyncBufRead + Unpin), limit: u64) -> Result<Option<Bytes>, Error> {
    let mut line = Vec::new();
    let mut limited = lines.take(limit + 1);
    let read = limited.read_until(b'\n', &mut line).await;
    match read.map_err(|error| Error::io("reading the lines", &error))? {
        0 => Ok(None),
        read if read as u64 > limit => Err(Error::refused(format!(
            "a line is longer than the {limit} bytes that an entry may have"
        ))),
        _ => Ok(Some(line.into())),
    }
}

#[cfg(test)]
mod tests;
