//! `wakelog import`: a session that holds a whole file, sent as one checkpoint.

use std::collections::BTreeMap;
use std::path::Path;

use futures::TryStreamExt as _;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use wakelog_client::{Connection, receive_body};
use wakelog_contract::Exit;
use wakelog_model::limits::MAX_REQUEST_ID_BYTES;
use wakelog_proto::v1::{DescribeSessionRequest, ExportSessionRequest, OpenSessionRequest};

use super::ending::{Stored, end_lifetime};
use super::writer_state::WriterState;
use super::{call, connect_to_write, labels_of, open_writer, writer_error};
use crate::args::ImportArgs;
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{print, print_json, progress};

pub(crate) async fn run(settings: &Settings, args: &ImportArgs) -> Result<Exit, Error> {
    let length = length_of(&args.file)?;
    let labels = labels_of(&args.labels)?;
    let connection = connect_to_write(settings).await?;
    let import = Import {
        request_id: request_id(args.request_id.as_deref(), "import")?,
        labels,
        file: &args.file,
        length,
    };
    let imported = import.run(&connection).await?;
    if args.json {
        print_json(&json!({
            "session_id": imported.session_id,
            "partition": imported.partition,
            "length": length,
            "last_entry_seq": imported.last_entry_seq,
        }))?;
    } else {
        print(&format!("{}\n", imported.session_id))?;
    }
    Ok(Exit::Done)
}

/// The name of a request that makes a session: as given, else a new one.
pub(crate) fn request_id(given: Option<&str>, what: &str) -> Result<String, Error> {
    let request_id = given.map_or_else(|| format!("{what}-{}", uuid::Uuid::new_v4()), str::to_owned);
    if request_id.is_empty() || request_id.len() > MAX_REQUEST_ID_BYTES {
        return Err(Error::usage(format!(
            "--request-id has 1 to {MAX_REQUEST_ID_BYTES} bytes"
        )));
    }
    Ok(request_id)
}

/// A file on its way into a session of its own.
pub(crate) struct Import<'a> {
    /// The same again is the same session, which must hold the file or nothing.
    pub(crate) request_id: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) file: &'a Path,
    /// Bytes of the file.
    pub(crate) length: u64,
}

/// A session that holds the file.
pub(crate) struct Imported {
    pub(crate) session_id: String,
    pub(crate) partition: i32,
    pub(crate) last_entry_seq: u64,
}

impl Import<'_> {
    /// Opens the session and sends the file, unless the session holds it already.
    pub(crate) async fn run(self, connection: &Connection) -> Result<Imported, Error> {
        let Self {
            request_id,
            labels,
            file,
            length,
        } = self;
        let request = OpenSessionRequest {
            request_id,
            labels,
            ..OpenSessionRequest::default()
        };
        let opened = call(connection, "opening a session", |mut sessions| {
            let request = request.clone();
            async move { sessions.open_session(request).await }
        })
        .await?;
        let session_id = opened.session_id;
        let held = last_entry_seq(connection, &session_id).await?;
        let last_entry_seq = if held > 0 {
            // An import that is asked again must not put the file over what was written since.
            check_same(connection, &session_id, file).await?;
            held
        } else {
            let sent = send(connection, &session_id, file, length).await;
            sent.map_err(|error| {
                error.or_hint(format!(
                    "session {session_id} was opened and does not hold the file"
                ))
            })?
        };
        Ok(Imported {
            session_id,
            partition: opened.partition,
            last_entry_seq,
        })
    }
}

async fn last_entry_seq(connection: &Connection, session_id: &str) -> Result<u64, Error> {
    let request = DescribeSessionRequest {
        session_id: session_id.to_owned(),
    };
    let described = call(connection, "looking at the session", |mut sessions| {
        let request = request.clone();
        async move { sessions.describe_session(request).await }
    })
    .await?;
    Ok(described.summary.map_or(0, |summary| summary.last_entry_seq))
}

/// Refuses unless the session's body is the file.
async fn check_same(connection: &Connection, session_id: &str, file: &Path) -> Result<(), Error> {
    let request = ExportSessionRequest {
        session_id: session_id.to_owned(),
    };
    let exported = call(connection, "reading the session", |mut sessions| {
        let request = request.clone();
        async move { sessions.export_session(request).await }
    })
    .await?;
    let chunks = exported.map_ok(|message| message.resume_body.unwrap_or_default());
    let body = receive_body(chunks, tokio::io::sink())
        .await
        .map_err(|error| Error::from(error).at(connection.endpoint()))?;
    let path = file.to_path_buf();
    let hashing = tokio::task::spawn_blocking(move || {
        let mut hasher = Sha256::new();
        std::io::copy(&mut std::fs::File::open(path)?, &mut hasher)?;
        Ok::<[u8; 32], std::io::Error>(hasher.finalize().into())
    });
    let hashed = hashing.await.map_err(|error| Error::failed(error.to_string()))?;
    if hashed.map_err(|error| Error::io(file.display(), &error))? == body.sha256 {
        return Ok(());
    }
    Err(Error::refused(format!(
        "session {session_id} holds something else than {}, and nothing of it was changed",
        file.display()
    ))
    .or_hint("another --request-id, or none, imports into a session of its own"))
}

async fn send(connection: &Connection, session_id: &str, file: &Path, length: u64) -> Result<u64, Error> {
    let mut state = WriterState::open(session_id)?;
    let (grant, nonce) = state.attach(connection, false).await?;
    let lifetime_id = grant.lifetime_id.clone();
    let mut writer = open_writer(connection, grant, nonce).await?;
    if length > writer.max_entry_bytes() {
        return Err(wakelog_client::Error::TooLarge {
            length,
            limit: writer.max_entry_bytes(),
        }
        .into());
    }
    let bar = progress("import", Some(length));
    let source = {
        let (path, bar) = (file.to_path_buf(), bar.clone());
        move || {
            bar.set_position(0);
            let file = File::from_std(std::fs::File::open(&path)?);
            Ok(Counted {
                file,
                bar: bar.clone(),
            })
        }
    };
    writer.append_stream(source, true).await.map_err(writer_error)?;
    writer.drain().await.map_err(writer_error)?;
    bar.finish_and_clear();
    let stored = Stored { entries: 1, length };
    end_lifetime(connection, session_id, &lifetime_id, stored).await
}

fn length_of(path: &Path) -> Result<u64, Error> {
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::new(Exit::NotFound, format!("{} does not exist", path.display()))
        }
        _ => Error::io(path.display(), &error),
    })?;
    if !metadata.is_file() {
        return Err(Error::refused(format!("{} is not a file", path.display()))
            .or_hint("`wakelog append ID -` reads from a pipe"));
    }
    if metadata.len() == 0 {
        return Err(Error::refused(format!(
            "{} is empty: there is nothing to resume",
            path.display()
        )));
    }
    Ok(metadata.len())
}

/// A file that tells a progress bar how far it was read.
struct Counted {
    file: File,
    bar: indicatif::ProgressBar,
}

impl tokio::io::AsyncRead for Counted {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = std::pin::Pin::new(&mut self.file).poll_read(context, buffer);
        self.bar.inc((buffer.filled().len() - before) as u64);
        polled
    }
}
