//! The services: several of each, started, killed, frozen one by one.

mod ends;
mod shares;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wakelog_client::Connection;

use super::Engines;
use super::s3::{ACCESS_KEY, BUCKET, SECRET_KEY};
use crate::support::PATIENCE;
use crate::support::process::{Process, end_of, free_port, get, metric, ready, sum_of, wakelog};

/// Partitions of a test's topic.
pub const PARTITIONS: i32 = 4;

/// A kind of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Ingest,
    Persist,
    Reconstruct,
    Archive,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Ingest, Self::Persist, Self::Reconstruct, Self::Archive];

    /// The command that runs it.
    pub fn command(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Persist => "persist",
            Self::Reconstruct => "reconstruct",
            Self::Archive => "archive",
        }
    }
}

/// One service of the fleet.
struct Member {
    kind: Kind,
    name: String,
    port: u16,
    http_port: u16,
    /// Variables of this member alone.
    variables: BTreeMap<String, String>,
    process: Option<Process>,
}

/// A fleet on a topic and a database of its own. Dropping it kills what still runs.
pub struct NativeStack {
    engines: Arc<Engines>,
    folder: TempDir,
    topic: String,
    variables: BTreeMap<String, String>,
    members: Vec<Member>,
}

/// The account of a stack in one process, so that tests need not ask which stack they run on.
const ACCOUNT: &str = "local";
const TOKEN: &str = "a-caller-token-of-the-tests-only-0123456789";

impl NativeStack {
    /// A fleet of two of each kind on the shared engines that is not started yet.
    pub async fn prepare() -> Self {
        Self::prepare_on(Engines::shared().await).await
    }

    /// The same on other engines.
    pub async fn prepare_on(engines: Arc<Engines>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let name = format!("t{}", uuid::Uuid::new_v4().simple());
        engines.postgres.create_database(&name).await;
        std::fs::write(folder.path().join("token-key"), "k".repeat(64)).expect("a file");
        let callers = format!("{ACCOUNT} {TOKEN}\n");
        std::fs::write(folder.path().join("caller-token"), callers).expect("a file");
        for file in ["token-key", "caller-token"] {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(folder.path().join(file), mode).expect("a mode");
        }
        let variables = [
            ("WAKELOG_BROKERS", engines.kafka.brokers()),
            ("WAKELOG_DATABASE_URL", engines.postgres.url(&name)),
            ("WAKELOG_TOPIC", name.clone()),
            ("WAKELOG_GROUP", name.clone()),
            ("WAKELOG_PARTITIONS", PARTITIONS.to_string()),
            ("WAKELOG_REPLICATION", engines.kafka.count().to_string()),
            ("WAKELOG_S3_ENDPOINT", engines.s3.endpoint()),
            ("WAKELOG_S3_BUCKET", BUCKET.to_owned()),
            ("WAKELOG_S3_ACCESS_KEY", ACCESS_KEY.to_owned()),
            ("WAKELOG_S3_SECRET_KEY", SECRET_KEY.to_owned()),
            ("WAKELOG_S3_PREFIX", name.clone()),
        ];
        let mut stack = Self {
            engines,
            folder,
            topic: name,
            variables: variables.map(|(name, value)| (name.to_owned(), value)).into(),
            members: Vec::new(),
        };
        for kind in Kind::ALL {
            stack.add(kind);
            stack.add(kind);
        }
        stack
    }

    /// Replaces the file of caller tokens before the first start.
    pub fn set_callers(&self, file: &str) {
        std::fs::write(self.folder.path().join("caller-token"), file).expect("a file");
    }

    /// One more of a kind, not started yet; returns its number within the kind.
    pub fn add(&mut self, kind: Kind) -> usize {
        let number = self.members.iter().filter(|member| member.kind == kind).count();
        self.members.push(Member {
            kind,
            name: format!("{}-{number}", kind.command()),
            port: free_port(),
            http_port: free_port(),
            variables: BTreeMap::new(),
            process: None,
        });
        number
    }

    /// Sets a variable of every member from its next start on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    /// Sets a variable of one member from its next start on.
    pub fn set_of(&mut self, kind: Kind, number: usize, name: &str, value: &str) {
        let member = self.member_mut(kind, number);
        member.variables.insert(name.to_owned(), value.to_owned());
    }

    /// Takes a variable of one member back, from its next start on.
    pub fn unset_of(&mut self, kind: Kind, number: usize, name: &str) {
        self.member_mut(kind, number).variables.remove(name);
    }

    /// Starts everything that is not running, and waits until it is ready.
    pub async fn up(&mut self) {
        self.up_all_but(None).await;
    }

    /// The same for all but one member.
    pub async fn up_without(&mut self, kind: Kind, number: usize) {
        self.up_all_but(Some((kind, number))).await;
    }

    async fn up_all_but(&mut self, left_out: Option<(Kind, usize)>) {
        let migrated = self.command(&["migrate"]).output().expect("migrate runs");
        assert!(
            migrated.status.success(),
            "migrate: {}",
            String::from_utf8_lossy(&migrated.stderr)
        );
        let mut wanted = self.all();
        wanted.retain(|member| Some(*member) != left_out);
        // The first one makes the topic; the others find it.
        for (kind, number) in &wanted {
            if !self.is_running(*kind, *number) {
                self.spawn(*kind, *number);
            }
        }
        for (kind, number) in wanted {
            self.wait_ready(kind, number).await;
        }
    }

    /// Starts one member without waiting for it.
    pub fn spawn(&mut self, kind: Kind, number: usize) {
        let log = self.log_of(kind, number);
        let member = self.member(kind, number);
        assert!(member.process.is_none(), "{} is up", member.name);
        let mut command = self.command(&[kind.command()]);
        command
            .arg("--http-listen")
            .arg(format!("127.0.0.1:{}", member.http_port));
        if matches!(kind, Kind::Ingest | Kind::Reconstruct) {
            command.arg("--listen").arg(format!("127.0.0.1:{}", member.port));
            command
                .arg("--token-key-file")
                .arg(self.folder.path().join("token-key"));
        }
        if kind == Kind::Reconstruct {
            command
                .arg("--caller-token-file")
                .arg(self.folder.path().join("caller-token"));
        }
        command.envs(&member.variables);
        let process = Process::start(&member.name, &command, &log);
        self.member_mut(kind, number).process = Some(process);
    }

    /// Starts one member and waits until it is ready.
    pub async fn start(&mut self, kind: Kind, number: usize) {
        self.spawn(kind, number);
        self.wait_ready(kind, number).await;
    }

    /// Waits until a member is ready.
    pub async fn wait_ready(&mut self, kind: Kind, number: usize) {
        let deadline = Instant::now() + PATIENCE;
        while !ready(&self.http(kind, number)).await {
            let log = self.log_of(kind, number);
            let member = self.member_mut(kind, number);
            let ended = member.process.as_mut().expect("it was started").ended();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "{} is not ready, ended: {ended:?}\n{}",
                member.name,
                end_of(&log)
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// How many members of a kind there are.
    pub fn count(&self, kind: Kind) -> usize {
        self.members.iter().filter(|member| member.kind == kind).count()
    }

    /// The engines it runs on.
    pub fn engines(&self) -> &Engines {
        &self.engines
    }

    /// Where the log speaks the Kafka protocol.
    pub fn brokers(&self) -> String {
        self.variables["WAKELOG_BROKERS"].clone()
    }

    /// Its topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Its database, past any proxy.
    pub fn database_url(&self) -> String {
        self.engines.postgres.url(&self.topic)
    }

    /// The names of its objects that begin with `prefix`, in order.
    pub fn objects(&self, prefix: &str) -> Vec<String> {
        let below = format!("{}/", self.topic);
        let keys = self.engines.s3.keys(&format!("{below}{prefix}"));
        keys.into_iter()
            .map(|key| key[below.len()..].to_owned())
            .collect()
    }

    /// Where an object is on the disk of the S3 server.
    pub fn object_path(&self, key: &str) -> PathBuf {
        self.engines.s3.bucket_folder().join(&self.topic).join(key)
    }

    /// A folder for the test's own files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The caller token.
    pub fn token(&self) -> String {
        TOKEN.to_owned()
    }

    /// Where a member serves gRPC.
    pub fn endpoint(&self, kind: Kind, number: usize) -> String {
        format!("http://127.0.0.1:{}", self.member(kind, number).port)
    }

    /// Where every member of a kind serves gRPC, as a list.
    pub fn endpoints(&self, kind: Kind) -> String {
        let all = (0..self.count(kind)).map(|number| self.endpoint(kind, number));
        all.collect::<Vec<_>>().join(",")
    }

    /// Where a member serves its pages.
    pub fn http(&self, kind: Kind, number: usize) -> String {
        format!("127.0.0.1:{}", self.member(kind, number).http_port)
    }

    /// The metrics of every member that runs, one after the other.
    pub async fn metrics(&self) -> String {
        let mut pages = String::new();
        for (kind, number) in self.all() {
            if self.is_running(kind, number) {
                let page = get(&self.http(kind, number), "/metrics").await;
                pages.push_str(&page.unwrap_or_default());
                pages.push('\n');
            }
        }
        pages
    }

    /// A metric of one member, summed over its labels.
    pub async fn metric(&self, kind: Kind, number: usize, name: &str) -> f64 {
        metric(&self.http(kind, number), name).await
    }

    /// The sum of a metric over all members of a kind that run, of the series whose labels contain `label`.
    pub async fn total(&self, kind: Kind, name: &str, label: &str) -> f64 {
        let mut total = 0.0;
        for number in 0..self.count(kind) {
            let page = get(&self.http(kind, number), "/metrics").await;
            total += sum_of(&page.unwrap_or_default(), name, label);
        }
        total
    }

    /// A connection: sessions at the first reconstructor that answers, entries at every ingest.
    pub async fn connect(&self) -> Connection {
        let sessions = self.endpoints(Kind::Reconstruct);
        self.connect_to(&sessions, &self.endpoints(Kind::Ingest)).await
    }

    /// The same, with each list turned by so many places: another reconstructor and another ingest come first.
    pub async fn connect_turned(&self, places: usize) -> Connection {
        let turned = |kind| {
            let count = self.count(kind);
            let all = (0..count).map(|number| self.endpoint(kind, (number + places) % count));
            all.collect::<Vec<_>>().join(",")
        };
        self.connect_to(&turned(Kind::Reconstruct), &turned(Kind::Ingest))
            .await
    }

    /// A connection to these.
    pub async fn connect_to(&self, sessions: &str, relays: &str) -> Connection {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Connection::connect_any(sessions, Some(self.token())).await {
                Ok(connection) => return connection.with_relays(relays).expect("endpoints"),
                Err(error) if Instant::now() > deadline => panic!("{error}\n{}", self.log()),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// The binary with the settings of this fleet.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = wakelog(self.folder.path());
        command.args(args).envs(&self.variables);
        command
    }

    /// The end of what each member has logged.
    pub fn log(&self) -> String {
        let of = |(kind, number): (Kind, usize)| {
            let log = end_of(&self.log_of(kind, number));
            format!("--- {} {number}\n{log}", kind.command())
        };
        self.all().into_iter().map(of).collect::<Vec<_>>().join("\n")
    }

    /// Everything that a member has logged.
    pub fn whole_log(&self, kind: Kind, number: usize) -> String {
        std::fs::read_to_string(self.log_of(kind, number)).unwrap_or_default()
    }

    /// `wakelog verify`: it must be clean. Returns its report.
    pub fn verify(&self) -> serde_json::Value {
        let verify = self.command(&["verify", "--json"]).output().expect("verify runs");
        assert!(
            verify.status.success(),
            "verify ended with {}\n{}{}\n{}",
            verify.status,
            String::from_utf8_lossy(&verify.stdout),
            String::from_utf8_lossy(&verify.stderr),
            self.log(),
        );
        serde_json::from_slice(&verify.stdout).expect("a JSON object")
    }

    fn log_of(&self, kind: Kind, number: usize) -> PathBuf {
        self.folder
            .path()
            .join(format!("{}-{number}.log", kind.command()))
    }

    fn all(&self) -> Vec<(Kind, usize)> {
        let numbers = |kind| (0..self.count(kind)).map(move |number| (kind, number));
        Kind::ALL.into_iter().flat_map(numbers).collect()
    }

    fn member(&self, kind: Kind, number: usize) -> &Member {
        let mut members = self.members.iter().filter(|member| member.kind == kind);
        members.nth(number).expect("a member")
    }

    fn member_mut(&mut self, kind: Kind, number: usize) -> &mut Member {
        let mut members = self.members.iter_mut().filter(|member| member.kind == kind);
        members.nth(number).expect("a member")
    }

    fn take(&mut self, kind: Kind, number: usize) -> Process {
        let process = self.member_mut(kind, number).process.take();
        process.expect("the member is up")
    }
}

impl Drop for NativeStack {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the fleet's logs\n{}", self.log());
        }
    }
}
