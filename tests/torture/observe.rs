//! What a stack says of a session in the end: through its services, through the command, and in its tables.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use sqlx::{Connection as _, PgConnection};

use crate::checker::{Answer, FoundEntry, Holdings};
use crate::support::native::{Kind, NativeStack};
use crate::support::session::{export, resume};
use crate::workload::client::{Client, Servers};

/// Where the services of a stack are.
pub fn servers_of(stack: &NativeStack) -> Servers {
    let all = |kind| {
        (0..stack.count(kind))
            .map(|number| stack.endpoint(kind, number))
            .collect()
    };
    Servers {
        sessions: all(Kind::Reconstruct),
        relays: all(Kind::Ingest),
        token: stack.token(),
    }
}

/// Asks a stack whose services run.
pub struct Observer {
    client: Client,
    sessions: String,
    token_file: PathBuf,
    folder: PathBuf,
    within: Duration,
}

impl Observer {
    /// Asks the services of a stack, which may take so long to say something.
    pub fn of(stack: &NativeStack, servers: &Servers, within: Duration) -> Self {
        Self {
            within,
            client: Client::new(servers.clone(), 0).giving_up_after(within),
            sessions: servers.sessions.join(","),
            token_file: stack.folder().join("caller-token"),
            folder: stack.folder().to_owned(),
        }
    }

    /// The body, without a bind.
    pub async fn export(&mut self, session: &str) -> Answer<Bytes> {
        let exported = self.client.ask(|connection| {
            let session = session.to_owned();
            async move { export(&connection, &session).await }
        });
        let (_, body) = exported.await.map_err(|trouble| trouble.to_string())?;
        Ok(body.into())
    }

    /// The body of a resume.
    pub async fn resume(&mut self, session: &str) -> Answer<Bytes> {
        let request = uuid::Uuid::new_v4().to_string();
        let resumed = self.client.ask(|connection| {
            let (session, request) = (session.to_owned(), request.clone());
            async move { resume(&connection, &session, &request).await }
        });
        let (_, body) = resumed.await.map_err(|trouble| trouble.to_string())?;
        Ok(body.into())
    }

    /// `wakelog history`: every entry that the session ever had.
    pub fn history(&self, command: Command, session: &str) -> Answer<Vec<FoundEntry>> {
        let out = self.folder.join("history");
        let mut command = bounded(&command, self.within);
        command
            .env("WAKELOG_SERVER", &self.sessions)
            .env("WAKELOG_TOKEN_FILE", &self.token_file)
            .args(["history", session, "--json", "--force", "--out"])
            .arg(&out);
        let ran = command.output().map_err(|error| error.to_string())?;
        if !ran.status.success() {
            return Err(format!(
                "{}: {}",
                ran.status,
                String::from_utf8_lossy(&ran.stderr)
            ));
        }
        entries_of(&ran.stdout, &out)
    }
}

/// The same command with a bound, so that one that tries again ends.
fn bounded(command: &Command, within: Duration) -> Command {
    let mut bounded = Command::new("timeout");
    bounded
        .arg(within.as_secs().to_string())
        .arg(command.get_program());
    bounded.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bounded.env(name, value),
            None => bounded.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        bounded.current_dir(folder);
    }
    bounded
}

/// One JSON object an entry, and the bytes of all of them in a file.
fn entries_of(objects: &[u8], file: &Path) -> Answer<Vec<FoundEntry>> {
    let mut left = Bytes::from(std::fs::read(file).map_err(|error| error.to_string())?);
    let mut entries = Vec::new();
    for line in String::from_utf8_lossy(objects).lines() {
        let object: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        let number = |name: &str| object[name].as_u64().ok_or_else(|| format!("no {name}: {line}"));
        let length = number("length")? as usize;
        if length > left.len() {
            return Err(format!("{} bytes are left: {line}", left.len()));
        }
        entries.push(FoundEntry {
            entry_seq: number("entry_seq")?,
            checkpoint: object["checkpoint"].as_bool() == Some(true),
            bytes: left.split_to(length),
        });
    }
    match left.is_empty() {
        true => Ok(entries),
        false => Err(format!("{} bytes more than its entries have", left.len())),
    }
}

/// What the tables have of a session. Nothing may run that moves entries.
pub async fn holdings(database: &mut PgConnection, session: &str) -> Result<Holdings, sqlx::Error> {
    let last_entry: i64 =
        sqlx::query_scalar("SELECT last_entry_seq FROM agent_sessions WHERE session_id = $1::text::uuid")
            .bind(session)
            .fetch_one(&mut *database)
            .await?;
    let hot: Vec<(i64, bool)> = sqlx::query_as(
        "SELECT entry_seq, bool_or(last) AND count(*) = max(part) + 1
         FROM agent_session_transcript_entries WHERE session_id = $1::text::uuid GROUP BY entry_seq",
    )
    .bind(session)
    .fetch_all(&mut *database)
    .await?;
    let segments: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT min_entry_seq, max_entry_seq FROM agent_session_archive_segments
         WHERE session_id = $1::text::uuid",
    )
    .bind(session)
    .fetch_all(&mut *database)
    .await?;
    Ok(Holdings {
        last_entry: last_entry as u64,
        hot: hot
            .into_iter()
            .map(|(entry, whole)| (entry as u64, whole))
            .collect(),
        segments: segments
            .into_iter()
            .map(|(first, last)| (first as u64, last as u64))
            .collect(),
    })
}

/// A connection to a database, past any proxy.
pub async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("a connection")
}

/// Runs `wakelog` with these arguments: what it prints, or how it ended.
pub fn run(mut command: Command) -> Answer<Value> {
    let ran = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    match ran.status.success() {
        true => serde_json::from_str(&said).map_err(|error| format!("{error}: {said}")),
        false => Err(format!(
            "{}: {said}{}",
            ran.status,
            String::from_utf8_lossy(&ran.stderr)
        )),
    }
}
