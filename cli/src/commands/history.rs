//! `wakelog history`: every entry that a session ever had, from archive and hot tail, in order and each once. What
//! checkpoints have superseded is in it; it is no body that an agent could load.

use std::io::{BufWriter, Write as _};
use std::ops::ControlFlow;

use wakelog_contract::Exit;
use wakelog_proto::v1::TailSessionResponse;

use super::entries::Entries;
use super::received_file::ReceivedFile;
use super::tail::{EntryLengths, print_bytes};
use super::{connect, session_id};
use crate::args::HistoryArgs;
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{print, print_json, progress};

/// Bytes that are written to a file at a time.
const WRITE_BYTES: usize = 1024 * 1024;

pub(crate) async fn run(settings: &Settings, args: &HistoryArgs) -> Result<Exit, Error> {
    let session_id = session_id(&args.session)?;
    let file = args
        .out
        .as_deref()
        .map(|out| ReceivedFile::create(out, args.force));
    let file = file.transpose()?;
    let connection = connect(settings).await?;
    let entries = Entries {
        session_id: &session_id,
        from: 1,
        follow: false,
    };
    let partial = file.as_ref().map(ReceivedFile::open_partial).transpose()?;
    let mut partial = partial.map(|partial| BufWriter::with_capacity(WRITE_BYTES, partial));
    let bar = progress("history", None);
    let (mut lengths, mut entry_count, mut length) = (EntryLengths::default(), 0_u64, 0_u64);
    let take = |part: &TailSessionResponse| {
        length += part.content.len() as u64;
        entry_count += u64::from(part.last);
        match &mut partial {
            Some(partial) => {
                bar.inc(part.content.len() as u64);
                partial.write_all(&part.content).map_err(cannot_write)?;
            }
            None if !args.json => print_bytes(&part.content)?,
            None => {}
        }
        if args.json
            && let Some(described) = lengths.describe(part)
        {
            print_json(&described)?;
        }
        Ok(ControlFlow::Continue(()))
    };
    entries.read(&connection, take).await?;
    bar.finish_and_clear();
    if let Some(mut partial) = partial {
        partial.flush().map_err(cannot_write)?;
    }
    let Some(file) = file else {
        return Ok(Exit::Done);
    };
    let path = file.path().display().to_string();
    file.keep()?;
    if !args.json {
        print(&format!("{path}: {entry_count} entries, {length} bytes\n"))?;
    }
    Ok(Exit::Done)
}

fn cannot_write(error: std::io::Error) -> Error {
    Error::io("the file", &error)
}
