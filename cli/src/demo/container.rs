//! How an agent's process is started, watched and killed.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use wakelog_proto::v1::LifetimeGrant;

use super::agent::{Orders, Played};
use super::{PATIENCE, PAUSE};
use crate::exit::Error;

/// A "container": a process that plays recorded calls.
pub(crate) struct Container {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Container {
    /// Starts an agent in `lifetime` that plays from `first_call` on.
    pub(crate) fn start(
        endpoint: &str,
        lifetime: &LifetimeGrant,
        session_file: &Path,
        first_call: usize,
        stuck_after_call: Option<usize>,
    ) -> Result<Self, Error> {
        let wrong = |error| Error::io("the agent's process", &error);
        let program = std::env::current_exe().map_err(wrong)?;
        let mut child = Command::new(program)
            .arg("demo-agent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(wrong)?;
        let orders = Orders {
            endpoint: endpoint.to_owned(),
            session_id: lifetime.session_id.clone(),
            lifetime_token: lifetime.token.clone(),
            session_file: session_file.to_path_buf(),
            first_call,
            pause_ms: PAUSE.as_millis() as u64,
            stuck_after_call,
        };
        let orders = serde_json::to_vec(&orders).map_err(|error| Error::failed(error.to_string()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (mut stdin, stdout) = pipes.ok_or_else(|| Error::failed("the agent's process has no pipes"))?;
        // The orders fit into a pipe, so this ends whatever the process does.
        tokio::spawn(async move { stdin.write_all(&orders).await });
        Ok(Self {
            child,
            lines: BufReader::new(stdout).lines(),
        })
    }

    /// The next call that was acknowledged; `None`: the agent is done.
    pub(crate) async fn next(&mut self) -> Result<Option<Played>, Error> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.map_err(|_| Error::failed(format!("the agent said nothing within {PATIENCE:?}")))?;
        let line = line.map_err(|error| Error::io("the agent's process", &error))?;
        line.map(|line| serde_json::from_str(&line))
            .transpose()
            .map_err(|error| Error::failed(error.to_string()))
    }

    /// Kills the process with SIGKILL and returns its id.
    pub(crate) async fn kill(&mut self) -> Result<u32, Error> {
        let pid = self
            .child
            .id()
            .ok_or_else(|| Error::failed("the agent had ended before it was killed"))?;
        self.child
            .kill()
            .await
            .map_err(|error| Error::io("the agent's process", &error))?;
        Ok(pid)
    }

    /// Waits for the agent's own end, which must be a good one.
    pub(crate) async fn wait(&mut self) -> Result<(), Error> {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let ended = ended.map_err(|_| Error::failed("the agent did not end"))?;
        let status = ended.map_err(|error| Error::io("the agent's process", &error))?;
        if !status.success() {
            return Err(Error::failed(format!("the agent ended with {status}")));
        }
        Ok(())
    }
}
