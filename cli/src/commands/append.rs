//! `wakelog append`: each line one entry, byte for byte.

use std::path::Path;

use bytes::Bytes;
use serde_json::json;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use wakelog_contract::Exit;

use super::import::end_lifetime;
use super::writer_state::WriterState;
use super::{connect_to_write, open_writer, session_id};
use crate::args::AppendArgs;
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{print, print_json};

pub(crate) async fn run(settings: &Settings, args: &AppendArgs) -> Result<Exit, Error> {
    let session_id = session_id(&args.session)?;
    let mut lines = open(&args.file).await?;
    let connection = connect_to_write(settings).await?;
    let mut state = WriterState::open(&session_id)?;
    let (grant, nonce) = state
        .attach(&connection.sessions(), args.take_over)
        .await
        .map_err(|error| {
            error.or_hint(
                "only who wrote to a session last may append to it; --take-over takes it over on purpose",
            )
        })?;
    let lifetime_id = grant.lifetime_id.clone();
    let mut writer = open_writer(&connection, grant, nonce).await?;
    let mut entries = 0_u64;
    let mut length = 0_u64;
    let limit = writer.max_entry_bytes();
    let mut asked_to_stop = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        // An interrupt ends the reading; what was read is still sent and drained.
        let line = tokio::select! {
            line = next_line(&mut lines, limit) => line?,
            _ = &mut asked_to_stop => break,
        };
        let Some(line) = line else { break };
        length += line.len() as u64;
        writer.append(line, false).await?;
        entries += 1;
    }
    writer.drain().await?;
    let last_entry_seq = end_lifetime(&connection, &session_id, &lifetime_id).await?;
    if args.json {
        print_json(&json!({
            "session_id": session_id,
            "entries": entries,
            "length": length,
            "last_entry_seq": last_entry_seq,
        }))?;
    } else {
        print(&format!("{entries} entries appended, {length} bytes\n"))?;
    }
    Ok(Exit::Done)
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
