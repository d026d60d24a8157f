//! A service as a process of its own: started, waited for, its memory read, stopped.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::Error;
use crate::stage::Stage;

/// How long a service may take until it is ready.
const READY_WAIT: Duration = Duration::from_secs(30);

/// How long a service may take to stop before it is killed.
const STOP_WAIT: Duration = Duration::from_secs(20);

/// Lines of a service's log that are shown if it fails.
const SHOWN_LINES: usize = 8;

/// Which service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Ingest,
    Persister,
    Reconstructor,
    Archiver,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Persister => "persister",
            Self::Reconstructor => "reconstructor",
            Self::Archiver => "archiver",
        }
    }

    fn subcommand(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Persister => "persist",
            Self::Reconstructor => "reconstruct",
            Self::Archiver => "archive",
        }
    }
}

/// A running service. Dropping it kills the process.
pub(crate) struct Service {
    kind: Kind,
    child: Child,
    grpc: u16,
    http: u16,
    log: std::path::PathBuf,
}

impl Service {
    /// Starts the process, with further arguments, and waits until it says that it is ready.
    pub(crate) async fn start(
        program: &std::path::Path,
        stage: &Stage,
        kind: Kind,
        arguments: &[String],
    ) -> Result<Self, Error> {
        let (grpc, http) = (free_port()?, free_port()?);
        let log = stage.path(&format!("{}.log", kind.name()));
        let output = std::fs::File::create(&log).map_err(|error| Error::io("a service's log", error))?;
        let mut command = Command::new(program);
        command
            .arg("--config")
            .arg(stage.path("wakelog.toml"))
            .arg(kind.subcommand())
            .args(["--http-listen", &format!("127.0.0.1:{http}")])
            .args(["--listen", &format!("127.0.0.1:{grpc}")])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(output))
            .kill_on_drop(true);
        // What is set for the user's own stack is not meant for this one.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("WAKELOG_") {
                command.env_remove(name);
            }
        }
        let child = command
            .spawn()
            .map_err(|error| Error::io(format!("starting the {}", kind.name()), error))?;
        let mut service = Self {
            kind,
            child,
            grpc,
            http,
            log,
        };
        service.wait_ready().await?;
        Ok(service)
    }

    /// Where its gRPC is.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.grpc)
    }

    /// The most memory that it has had, in bytes; `None` where the system does not say.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        self.memory("VmHWM:")
    }

    /// The memory that it has now, in bytes; `None` where the system does not say.
    pub(crate) fn resident_memory(&self) -> Option<u64> {
        self.memory("VmRSS:")
    }

    /// Files and sockets that it has open now; 0 where the system does not say.
    pub(crate) fn open_files(&self) -> f64 {
        self.entries_of("fd")
    }

    /// Its threads now; 0 where the system does not say.
    pub(crate) fn threads(&self) -> f64 {
        self.entries_of("task")
    }

    fn entries_of(&self, folder: &str) -> f64 {
        let Some(id) = self.child.id() else {
            return 0.0;
        };
        std::fs::read_dir(format!("/proc/{id}/{folder}")).map_or(0, Iterator::count) as f64
    }

    fn memory(&self, field: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        bytes_of_status(&status, field)
    }

    /// One of its counters, summed over its labels; 0 if it does not have it yet.
    pub(crate) async fn counter(&self, name: &str) -> Result<f64, Error> {
        self.labelled_counter(name, "").await
    }

    /// The same, of the lines alone that have a label, written `name="value"`.
    pub(crate) async fn labelled_counter(&self, name: &str, label: &str) -> Result<f64, Error> {
        let page = self
            .get("/metrics")
            .await
            .map_err(|error| self.failed(error.to_string()))?;
        Ok(counter_of_page(&page, name, label))
    }

    /// Stops it in the middle of whatever it does; [`Self::thaw`] lets it go on.
    pub(crate) fn freeze(&self) -> Result<(), Error> {
        self.signal(Signal::STOP, "freezing a service")
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) -> Result<(), Error> {
        self.signal(Signal::CONT, "thawing a service")
    }

    fn signal(&self, signal: Signal, what: &'static str) -> Result<(), Error> {
        let pid = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
            .ok_or_else(|| self.failed("it has ended by itself"))?;
        kill_process(pid, signal).map_err(|error| Error::io(what, error.into()))
    }

    /// Asks it to stop and waits for its end. Returns the most memory that it has had.
    pub(crate) async fn stop(mut self) -> Result<Option<u64>, Error> {
        let peak = self.peak_memory();
        self.signal(Signal::TERM, "stopping a service")?;
        let ended = timeout(STOP_WAIT, self.child.wait()).await;
        match ended {
            Ok(Ok(status)) if status.success() => Ok(peak),
            Ok(Ok(status)) => Err(self.failed(format!("it ended with {status}"))),
            Ok(Err(error)) => Err(Error::io("stopping a service", error)),
            Err(_) => Err(self.failed(format!("it did not stop within {STOP_WAIT:?}"))),
        }
    }

    async fn wait_ready(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + READY_WAIT;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failed(format!("it ended with {status}")));
            }
            if self.get("/readyz").await.is_ok() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(self.failed(format!("it was not ready within {READY_WAIT:?}")));
            }
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// The body of a page of its own HTTP server; an error unless the answer is 200.
    async fn get(&self, path: &str) -> std::io::Result<String> {
        let asking = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.http)).await?;
            let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            Ok::<String, std::io::Error>(answer)
        };
        let answer = timeout(Duration::from_secs(5), asking)
            .await
            .unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))?;
        match answer.starts_with("HTTP/1.1 200") {
            true => Ok(answer),
            false => Err(std::io::Error::other("the answer is not 200")),
        }
    }

    fn failed(&self, reason: impl Into<String>) -> Error {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
        Error::Service {
            service: self.kind.name(),
            reason: format!("{}\n{last}", reason.into()),
        }
    }
}

fn free_port() -> Result<u16, Error> {
    let taken = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    taken
        .map(|address| address.port())
        .map_err(|error| Error::io("a free port", error))
}

/// A field of a `/proc/PID/status`, in bytes.
fn bytes_of_status(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// A counter of a Prometheus page, summed over the lines that have the label; all of them have the empty one.
fn counter_of_page(page: &str, name: &str, label: &str) -> f64 {
    page.lines()
        .filter_map(|line| line.strip_prefix(name))
        .filter(|rest| rest.starts_with([' ', '{']) && rest.contains(label))
        .filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        let status = "Name:\twakelog\nVmPeak:\t  900 kB\nVmHWM:\t   88 kB\nVmRSS:\t  12 kB\n";
        assert_eq!(bytes_of_status(status, "VmHWM:"), Some(88 * 1024));
        assert_eq!(bytes_of_status(status, "VmRSS:"), Some(12 * 1024));
        assert_eq!(bytes_of_status("Name:\tkernel thread\n", "VmHWM:"), None);
    }

    #[test]
    fn a_counter_is_summed_over_its_labels_and_no_other_is_taken_for_it() {
        let page = "# TYPE a_total counter\na_total{x=\"1\"} 3\na_total{x=\"2\"} 4\na_total_of_b 9\n\nb 2\n";
        assert_eq!(counter_of_page(page, "a_total", ""), 7.0);
        assert_eq!(counter_of_page(page, "b", ""), 2.0);
        assert_eq!(counter_of_page(page, "c", ""), 0.0);
        assert_eq!(counter_of_page(page, "a_total", "x=\"2\""), 4.0);
    }
}
