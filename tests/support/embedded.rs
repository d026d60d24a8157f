//! `wakelog up` on a folder of its own: started, killed, restarted. Nothing of the stack runs in the test's process.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wakelog_client::Connection;

use super::PATIENCE;
use super::process::{dying_with_us, end_of, free_port, ready, signal, wakelog};

/// A stack and its folder. Dropping it kills what still runs.
pub struct EmbeddedStack {
    folder: TempDir,
    /// The home of its user.
    home: PathBuf,
    data_dir: PathBuf,
    port: u16,
    http_port: u16,
    failpoints: String,
    up_args: Vec<String>,
    child: Option<Child>,
}

impl EmbeddedStack {
    /// Starts a stack on a new folder.
    pub async fn start() -> Self {
        Self::start_with("").await
    }

    /// Starts a stack with failpoints, as `name=action;name=action`.
    pub async fn start_with(failpoints: &str) -> Self {
        let mut stack = Self::prepare();
        stack.set_failpoints(failpoints);
        stack.up().await;
        stack
    }

    /// A stack on a new folder that is not started yet.
    pub fn prepare() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self {
            data_dir: folder.path().join("data"),
            home: folder.path().to_owned(),
            folder,
            port: free_port(),
            http_port: free_port(),
            failpoints: String::new(),
            up_args: vec!["--no-discovery".to_owned()],
            child: None,
        }
    }

    /// Another data folder for the next start.
    pub fn set_data_dir(&mut self, data_dir: PathBuf) {
        self.data_dir = data_dir;
    }

    /// Another home: that of another stack makes both of them stacks of one user.
    pub fn set_home(&mut self, home: &Path) {
        self.home = home.to_owned();
    }

    /// The arguments of `wakelog up` beyond folder and ports; without this it is `--no-discovery`.
    pub fn set_up_args(&mut self, args: &[&str]) {
        self.up_args = args.iter().map(|arg| (*arg).to_owned()).collect();
    }

    /// Sets the failpoints of the next start.
    pub fn set_failpoints(&mut self, failpoints: &str) {
        self.failpoints = failpoints.to_owned();
    }

    /// Starts the stack and waits until it is ready.
    pub async fn up(&mut self) {
        assert!(self.child.is_none(), "the stack is up");
        let mut child = dying_with_us(&self.up_command())
            .stdout(std::fs::File::create(self.folder.path().join("up.out")).expect("a file"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        keep_log(&mut child, self.folder.path().join("up.log"));
        self.child = Some(child);
        self.wait_ready().await;
    }

    /// `wakelog up` as [`EmbeddedStack::up`] starts it.
    pub fn up_command(&self) -> Command {
        let mut command = self.command();
        command
            .args(["up", "--data-dir"])
            .arg(&self.data_dir)
            .arg("--listen")
            .arg(format!("127.0.0.1:{}", self.port))
            .arg("--http-listen")
            .arg(format!("127.0.0.1:{}", self.http_port))
            .args(&self.up_args)
            .env("FAILPOINTS", &self.failpoints);
        command
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the stack is up").id()
    }

    /// How the process ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let child = self.child.as_mut().expect("the stack is up");
        let status = child.try_wait().expect("it can be waited for")?;
        self.child = None;
        Some(status)
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("the stack is up");
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }

    /// SIGTERM, and a bounded wait for the end.
    pub fn stop(&mut self) -> ExitStatus {
        signal("TERM", self.pid());
        self.wait_for_end()
    }

    /// A bounded wait for the end.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "the stack did not end within {PATIENCE:?}\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone()
    }

    /// A folder for the test's own files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where gRPC is served.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Where the pages are served.
    pub fn http(&self) -> String {
        format!("127.0.0.1:{}", self.http_port)
    }

    /// Where the log speaks the Kafka protocol.
    pub fn brokers(&self) -> String {
        let said = std::fs::read_to_string(self.folder.path().join("up.out")).expect("what the stack said");
        let line = said
            .lines()
            .find(|line| line.starts_with("log "))
            .expect("a line about the log");
        line.split_whitespace().nth(1).expect("an address").to_owned()
    }

    /// The caller token.
    pub fn token(&self) -> String {
        let file = std::fs::read_to_string(self.data_dir().join("caller-token")).expect("a token file");
        let line = file
            .lines()
            .find(|line| !line.starts_with('#') && !line.trim().is_empty())
            .expect("a token");
        line.split_whitespace().next_back().expect("a token").to_owned()
    }

    /// A connection with the caller token.
    pub async fn connect(&self) -> Connection {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Connection::connect(&self.endpoint(), Some(self.token())).await {
                Ok(connection) => return connection,
                Err(error) if Instant::now() > deadline => panic!("{error}\n{}", self.log()),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// A client command of the binary against this stack.
    pub fn client(&self, args: &[&str]) -> Command {
        let mut command = self.command();
        command.args(args).arg("--server").arg(self.endpoint());
        command
            .arg("--token-file")
            .arg(self.data_dir().join("caller-token"));
        command
    }

    /// The binary, in an environment of this test alone.
    pub fn command(&self) -> Command {
        let mut command = wakelog(self.folder.path());
        command.env("HOME", &self.home);
        command
    }

    /// What the stack has logged, the end of it.
    pub fn log(&self) -> String {
        end_of(&self.folder.path().join("up.log"))
    }

    /// Everything that the stack has logged.
    pub fn whole_log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("up.log")).unwrap_or_default()
    }

    /// `wakelog verify` on the stopped stack's folder: it must be clean.
    pub fn verify(&self) {
        assert!(self.child.is_none(), "verify needs the folder for itself");
        let verify = self
            .command()
            .args(["verify", "--data-dir"])
            .arg(self.data_dir())
            .output()
            .expect("verify runs");
        assert!(
            verify.status.success(),
            "verify ended with {}\n{}{}\n{}",
            verify.status,
            String::from_utf8_lossy(&verify.stdout),
            String::from_utf8_lossy(&verify.stderr),
            self.log(),
        );
    }

    /// The same; returns how many records must be in quarantine, and are.
    pub fn verify_counting(&self) -> u64 {
        self.verify();
        let verify = self
            .command()
            .args(["verify", "--json", "--data-dir"])
            .arg(self.data_dir())
            .output()
            .expect("verify runs");
        let report: serde_json::Value = serde_json::from_slice(&verify.stdout).expect("a JSON object");
        let partitions = report["partitions"].as_array().expect("partitions");
        let counts = partitions
            .iter()
            .map(|partition| partition["quarantined"].as_u64().expect("a count"));
        counts.sum()
    }

    async fn wait_ready(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if ready(&self.http()).await {
                return;
            }
            let ended = self
                .child
                .as_mut()
                .and_then(|child| child.try_wait().expect("it can be waited for"));
            assert!(ended.is_none(), "the stack ended with {ended:?}\n{}", self.log());
            assert!(
                Instant::now() < deadline,
                "the stack was not ready within {PATIENCE:?}\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for EmbeddedStack {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
        if std::thread::panicking() {
            eprintln!("--- the stack's log\n{}", self.log());
        }
    }
}

/// Keeps what a process says, so that a failure can show it.
fn keep_log(child: &mut Child, path: PathBuf) {
    let stderr = child.stderr.take().expect("a pipe");
    std::thread::spawn(move || {
        use std::io::Write as _;
        let mut log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .expect("a log file");
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            log.write_all(&line).ok();
            log.write_all(b"\n").ok();
        }
    });
}
