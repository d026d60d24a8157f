//! `wakelog export`: the session's file as of now. Binds nothing.

use std::path::Path;

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::json;
use tonic::{Status, Streaming};
use wakelog_client::receive_body;
use wakelog_contract::Exit;
use wakelog_proto::v1::{ExportSessionRequest, ExportSessionResponse, ResumeBody};

use super::received_file::ReceivedFile;
use super::{call, connect, session_id};
use crate::args::ExportArgs;
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{print, print_json, progress};

pub(crate) async fn run(settings: &Settings, args: &ExportArgs) -> Result<Exit, Error> {
    let session_id = session_id(&args.session)?;
    let to_stdout = args.out == Path::new("-");
    if to_stdout && args.json {
        return Err(Error::usage(
            "--json and --out - would both use the standard output",
        ));
    }
    let file = if to_stdout {
        None
    } else {
        Some(ReceivedFile::create(&args.out, args.force)?)
    };
    let connection = connect(settings).await?;
    let answer = call(&connection, "exporting the session", |mut sessions| {
        let request = ExportSessionRequest {
            session_id: session_id.clone(),
        };
        async move { sessions.export_session(request).await }
    })
    .await?;
    let bar = progress("export", None);
    let chunks = body_of(answer);
    let at_server = |error: Error| error.at(connection.endpoint());
    let body = match file {
        Some(file) => file.receive(chunks, &bar).await.map_err(at_server)?,
        None => {
            let chunks = chunks.inspect_ok(|chunk| bar.inc(chunk.session_body.len() as u64));
            receive_body(chunks, tokio::io::stdout())
                .await
                .map_err(|error| at_server(end_quietly_on_broken_pipe(error)))?
        }
    };
    bar.finish_and_clear();
    if to_stdout {
        return Ok(Exit::Done);
    }
    if args.json {
        print_json(&json!({
            "session_id": session_id,
            "length": body.length,
            "sha256": hex::encode(body.sha256),
            "first_entry_seq": body.first_entry_seq,
            "last_entry_seq": body.last_entry_seq,
            "file": args.out.to_string_lossy(),
        }))?;
    } else {
        print(&format!(
            "{}: {} bytes, sha256 {}\n",
            args.out.display(),
            body.length,
            hex::encode(body.sha256)
        ))?;
    }
    Ok(Exit::Done)
}

fn body_of(
    answer: Streaming<ExportSessionResponse>,
) -> impl futures::Stream<Item = Result<ResumeBody, Status>> {
    answer.map(|message| {
        message.and_then(|message| {
            message
                .resume_body
                .ok_or_else(|| Status::internal("a message of an export carries no body"))
        })
    })
}

fn end_quietly_on_broken_pipe(error: wakelog_client::Error) -> Error {
    if let wakelog_client::Error::Sink(cause) = &error
        && cause.kind() == std::io::ErrorKind::BrokenPipe
    {
        std::process::exit(0);
    }
    error.into()
}
