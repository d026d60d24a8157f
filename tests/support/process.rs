//! Processes of a test: the binary in an environment of its own, its log, signals, ports, pages.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::PATIENCE;

/// A process that is killed when it is dropped, and by the kernel when the test's process dies.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`; what it says is added to `log`.
    pub fn start(name: &str, command: &Command, log: &Path) -> Self {
        let file = File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("a log file");
        let child = dying_with_us(command)
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a second handle"))
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self {
            name: name.to_owned(),
            child,
            log: log.to_owned(),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it can be waited for")
    }

    /// `kill -9`, and the end.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// SIGTERM, and a bounded wait for the end.
    pub fn stop(mut self) -> ExitStatus {
        signal("TERM", self.pid());
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "{} did not end within {PATIENCE:?}\n{}",
                self.name,
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The end of what it has logged, over all starts with this log.
    pub fn log(&self) -> String {
        end_of(&self.log)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The end of a log.
pub fn end_of(log: &Path) -> String {
    let log = std::fs::read(log).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// The same command, ended by the kernel together with the thread that starts it: nothing outlives a test that is killed.
pub fn dying_with_us(command: &Command) -> Command {
    let mut wrapped = Command::new("setpriv");
    wrapped
        .args(["--pdeathsig", "KILL"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    wrapped
}

/// The binary, in an environment of this test alone.
pub fn wakelog(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakelog"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WAKELOG_") {
            command.env_remove(name);
        }
    }
    command
        .current_dir(folder)
        .env("HOME", folder)
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .env("WAKELOG_LOG", "info");
    command
}

/// Asks `/readyz`.
pub async fn ready(address: &str) -> bool {
    get(address, "/readyz")
        .await
        .is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// A page, headers included.
pub async fn get(address: &str, path: &str) -> Option<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(address).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    };
    tokio::time::timeout(Duration::from_secs(5), ask)
        .await
        .ok()
        .flatten()
}

/// The value of a metric that has no labels, or the sum over all labels; 0 if it is not there yet.
pub async fn metric(address: &str, name: &str) -> f64 {
    let page = get(address, "/metrics").await.unwrap_or_default();
    sum_of(&page, name, "")
}

/// The sum of a metric of a page, over the series whose labels contain `label`.
pub fn sum_of(page: &str, name: &str, label: &str) -> f64 {
    let values = page.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let is_it = series.split('{').next() == Some(name) && series.contains(label);
        is_it.then(|| value.parse::<f64>().expect("a number"))
    });
    values.sum()
}

/// Sends a signal by name.
pub fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status()
        .expect("kill runs");
    assert!(sent.success(), "kill -{name} {pid} failed");
}

/// Sends a signal by name to a process that may have ended.
pub fn signal_if_there(name: &str, pid: u32) {
    Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .stderr(Stdio::null())
        .status()
        .expect("kill runs");
}

/// Whether a process is stopped by a signal.
pub fn is_stopped(pid: u32) -> bool {
    stat_of(&pid.to_string()).is_some_and(|(state, _)| state == "T")
}

/// The processes that a process has started.
pub fn children_of(pid: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = processes.map(|process| process.file_name().to_string_lossy().into_owned());
    let children = names.filter(|name| stat_of(name).is_some_and(|(_, parent)| parent == pid));
    children.filter_map(|name| name.parse().ok()).collect()
}

/// State and parent of a process.
fn stat_of(pid: &str) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).ok()?;
    // The name in brackets may hold anything.
    let mut after_name = stat.rsplit(')').next()?.split_whitespace();
    let state = after_name.next()?.to_owned();
    Some((state, after_name.next()?.parse().ok()?))
}

/// A port that was free a moment ago, outside the range that the kernel hands out by itself. This process hands it out once
/// only, so that a service that is down for a moment finds its port again.
pub fn free_port() -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let slot = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(slot < 3_000, "no free port");
        let port = 20_000 + (std::process::id() % 4) as u16 * 3_000 + slot;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
