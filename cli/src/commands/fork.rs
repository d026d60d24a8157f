//! `wakelog resume --at`: the body as it was after some entry, in a file and in a new session. The session that it comes from
//! is read and nothing else: it is not fenced, and its writer goes on.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::ops::ControlFlow;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use wakelog_client::Connection;
use wakelog_contract::Exit;
use wakelog_proto::v1::{DescribeSessionRequest, SessionSummary, TailSessionResponse};

use super::entries::Entries;
use super::import::{Import, request_id};
use super::received_file::ReceivedFile;
use super::{call, connect_to_write, incomplete, session_id};
use crate::args::ResumeArgs;
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{print, print_json, progress};

/// The labels of the new session that say where it comes from; its others are those of that session.
const FORKED_FROM: &str = "forked_from";
const FORKED_AT: &str = "forked_at";

pub(crate) async fn run(settings: &Settings, args: &ResumeArgs, at: u64) -> Result<Exit, Error> {
    let source_id = session_id(&args.session)?;
    if at == 0 {
        return Err(Error::usage("--at 0: the first entry is number 1"));
    }
    let request_id = request_id(args.request_id.as_deref(), "fork")?;
    let file = ReceivedFile::create(&args.out, args.force)?;
    let connection = connect_to_write(settings).await?;
    let source = describe(&connection, &source_id).await?;
    if at > source.last_entry_seq {
        return Err(Error::new(
            Exit::NotFound,
            format!(
                "session {source_id} has no entry {at}, its last one is {}",
                source.last_entry_seq
            ),
        ));
    }
    let body = body_at(&connection, &source, at, file.open_partial()?).await?;
    let mut labels = source.labels.clone();
    labels.insert(FORKED_FROM.to_owned(), source_id.clone());
    labels.insert(FORKED_AT.to_owned(), at.to_string());
    let import = Import {
        request_id,
        labels,
        file: file.partial_path(),
        length: body.length,
    };
    let imported = import.run(&connection).await?;
    let new_id = imported.session_id;
    file.keep()
        .map_err(|error| error.or_hint(format!("session {new_id} holds what the file should")))?;
    if args.json {
        print_json(&json!({
            "session_id": new_id,
            "forked_from": source_id,
            "forked_at": at,
            "first_entry_seq": body.first_entry_seq,
            "length": body.length,
            "sha256": hex::encode(body.sha256),
            "last_entry_seq": imported.last_entry_seq,
            "file": args.out.to_string_lossy(),
        }))?;
    } else {
        print(&format!("{new_id}\n"))?;
    }
    Ok(Exit::Done)
}

async fn describe(connection: &Connection, session_id: &str) -> Result<SessionSummary, Error> {
    let described = call(connection, "looking at the session", |mut sessions| {
        let request = DescribeSessionRequest {
            session_id: session_id.to_owned(),
        };
        async move { sessions.describe_session(request).await }
    })
    .await?;
    described.summary.ok_or_else(|| incomplete("the summary"))
}

/// What was written into the file.
struct BodyAt {
    /// The entry that it starts with, in the session that it comes from.
    first_entry_seq: u64,
    length: u64,
    sha256: [u8; 32],
}

/// Writes the body after entry `at`. Which checkpoint it starts with is known only once it was passed, except that the last
/// one is known: so each checkpoint starts the file anew, and memory stays flat.
async fn body_at(
    connection: &Connection,
    source: &SessionSummary,
    at: u64,
    mut file: File,
) -> Result<BodyAt, Error> {
    let is_after_last_checkpoint = (1..=at).contains(&source.last_checkpoint_seq);
    let from = match is_after_last_checkpoint {
        true => source.last_checkpoint_seq,
        false => 1,
    };
    let entries = Entries {
        session_id: &source.session_id,
        from,
        follow: false,
    };
    let wrong = |error: std::io::Error| Error::io("the file", &error);
    let bar = progress("fork", None);
    let mut hasher = Sha256::new();
    let (mut first_entry_seq, mut length, mut is_complete) = (from, 0_u64, false);
    let take = |part: &TailSessionResponse| {
        if part.checkpoint && part.part == 0 {
            file.set_len(0).map_err(wrong)?;
            file.seek(SeekFrom::Start(0)).map_err(wrong)?;
            hasher = Sha256::new();
            (first_entry_seq, length) = (part.entry_seq, 0);
        }
        file.write_all(&part.content).map_err(wrong)?;
        hasher.update(&part.content);
        length += part.content.len() as u64;
        bar.inc(part.content.len() as u64);
        is_complete = part.entry_seq == at && part.last;
        Ok(match is_complete {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    };
    entries.read(connection, take).await?;
    bar.finish_and_clear();
    if !is_complete {
        return Err(incomplete(&format!("entry {at}")));
    }
    Ok(BodyAt {
        first_entry_seq,
        length,
        sha256: hasher.finalize().into(),
    })
}
