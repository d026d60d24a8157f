//! One wrong deployment: what each start says of it, what the doctor says, and that nothing is left behind.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::sync::Semaphore;

use super::site::{PASSWORD, Site, WRONG_SECRET, execute};
use crate::support::PATIENCE;
use crate::support::native::s3::{ACCESS_KEY, BUCKET, SECRET_KEY};
use crate::support::process::{dying_with_us, wakelog};

/// A dependency is away or wrong.
const DEPENDENCY: i32 = 5;

/// Processes at a time. Most of them wait for somebody who does not answer.
static TURNS: Semaphore = Semaphore::const_new(64);

/// What is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Ingest,
    Persist,
    Reconstruct,
    Archive,
    Up,
    Migrate,
}

use Start::{Archive, Ingest, Migrate, Persist, Reconstruct, Up};

pub(super) const EVERY_SERVICE: &[Start] = &[Ingest, Persist, Reconstruct, Archive, Up];
pub(super) const ALONE: &[Start] = &[Ingest, Persist, Reconstruct, Archive];
pub(super) const WRITERS: &[Start] = &[Persist, Reconstruct, Archive, Up];
pub(super) const OF_ARCHIVE: &[Start] = &[Archive, Up];
pub(super) const OF_BUCKET: &[Start] = &[Reconstruct, Archive, Up];
pub(super) const WHO_MIGRATES: &[Start] = &[Up, Migrate];

/// A deployment that is right but for one thing.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Variables that are not those of the right deployment.
    pub(super) variables: Vec<(&'static str, String)>,
    /// Lines of `[kafka]` in the configuration file.
    pub(super) kafka: String,
    /// Whether the database has its tables.
    pub(super) has_tables: bool,
    /// Statements in the database before; `TOPIC` is its topic.
    pub(super) damage: &'static str,
    /// The topic that is there before: its partitions and settings.
    pub(super) topic: Option<(i32, &'static [(&'static str, &'static str)])>,
    /// Who is concerned, and must refuse to start.
    pub(super) starts: &'static [Start],
    /// What the refusal says.
    pub(super) says: Vec<String>,
    /// What the hint says.
    pub(super) hint: &'static str,
    /// What the doctor says, if that is something else; empty: it can't know.
    pub(super) doctor: Option<(&'static str, &'static str)>,
}

impl Case {
    pub(super) fn new(name: &'static str, says: &[&str], hint: &'static str) -> Self {
        Self {
            name,
            variables: Vec::new(),
            kafka: String::new(),
            has_tables: true,
            damage: "",
            topic: None,
            starts: EVERY_SERVICE,
            says: says.iter().map(|text| (*text).to_owned()).collect(),
            hint,
            doctor: None,
        }
    }

    pub(super) fn with(mut self, variable: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((variable, value.into()));
        self
    }

    pub(super) fn of(mut self, starts: &'static [Start]) -> Self {
        self.starts = starts;
        self
    }
}

/// A case on the site: a topic, a group, a database and a prefix of its own.
pub(super) struct Scene {
    site: Arc<Site>,
    pub(super) name: String,
    folder: TempDir,
    variables: BTreeMap<String, String>,
}

/// What there is of a case in the engines.
#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    rows: BTreeMap<String, i64>,
    partitions: Option<usize>,
    groups: Vec<String>,
    objects: Vec<String>,
}

impl Scene {
    pub(super) async fn set(site: &Arc<Site>, case: &Case) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let name = format!("w{}", uuid::Uuid::new_v4().simple());
        let engines = &site.engines;
        site.create_database(&name, case.has_tables).await;
        if !case.damage.is_empty() {
            execute(&engines.postgres.url(&name), &case.damage.replace("TOPIC", &name)).await;
        }
        if let Some((partitions, settings)) = case.topic {
            engines.kafka.create_topic_with(&name, partitions, settings).await;
        }
        let folder = tempfile::tempdir().expect("a folder");
        for (file, text) in [
            ("token-key", "k".repeat(64)),
            ("caller-token", format!("local {}\n", "t".repeat(40))),
            ("wakelog.toml", format!("[kafka]\n{}", case.kafka)),
        ] {
            let path = folder.path().join(file);
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        }
        let right = [
            ("WAKELOG_BROKERS", engines.kafka.brokers()),
            ("WAKELOG_DATABASE_URL", engines.postgres.url(&name)),
            ("WAKELOG_TOPIC", name.clone()),
            ("WAKELOG_GROUP", name.clone()),
            ("WAKELOG_PARTITIONS", "2".to_owned()),
            ("WAKELOG_S3_ENDPOINT", engines.s3.endpoint()),
            ("WAKELOG_S3_BUCKET", BUCKET.to_owned()),
            ("WAKELOG_S3_ACCESS_KEY", ACCESS_KEY.to_owned()),
            ("WAKELOG_S3_SECRET_KEY", SECRET_KEY.to_owned()),
            ("WAKELOG_S3_PREFIX", name.clone()),
            ("WAKELOG_TOKEN_KEY_FILE", "token-key".to_owned()),
            ("WAKELOG_CALLER_TOKEN_FILE", "caller-token".to_owned()),
        ];
        let mut variables: BTreeMap<String, String> =
            right.map(|(name, value)| (name.to_owned(), value)).into();
        for (variable, value) in &case.variables {
            let value = value.replace("DATABASE", &name);
            variables.insert((*variable).to_owned(), value);
        }
        Self {
            site: site.clone(),
            name,
            folder,
            variables,
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = wakelog(self.folder.path());
        command.args(args).envs(&self.variables);
        command
    }

    /// The start of a service, on ports that nobody else has.
    pub(super) fn start(&self, start: Start, pages: &str) -> Command {
        let mut command = match start {
            Ingest => self.command(&["ingest"]),
            Persist => self.command(&["persist"]),
            Reconstruct => self.command(&["reconstruct"]),
            Archive => self.command(&["archive"]),
            Up => self.command(&["up", "--no-discovery", "--data-dir", "stack"]),
            Migrate => return self.command(&["migrate"]),
        };
        command.args(["--http-listen", pages]);
        if matches!(start, Ingest | Reconstruct | Up) {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command
    }

    /// Where it may write files.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the doctor finds, without what it says of servers: there are none.
    pub(super) async fn doctor(&self) -> (Ended, Vec<Finding>) {
        let nobody = "127.0.0.1:1";
        let server = format!("http://{nobody}");
        let doctor = self.command(&["doctor", "--json", "--server", &server, "--http-listen", nobody]);
        let ended = run(doctor).await;
        let findings = ended.stdout.lines().map(|line| {
            let finding: Value = serde_json::from_str(line).expect("a JSON object");
            let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
            Finding {
                check: text("check"),
                level: text("level"),
                message: text("message"),
                mend: text("mend"),
            }
        });
        let of_engines = ["log", "topic", "database", "schema", "persister", "archive"];
        let findings = findings.filter(|finding| of_engines.contains(&finding.check.as_str()));
        let findings = findings.collect();
        (ended, findings)
    }

    async fn holdings(&self) -> Holdings {
        let (site, name) = (self.site.clone(), self.name.clone());
        let rows = rows(&site.engines.postgres.url(&name)).await;
        let rest = tokio::task::spawn_blocking(move || {
            let (kafka, s3) = (&site.engines.kafka, &site.engines.s3);
            (
                kafka.partitions(&name),
                kafka.groups(&name),
                s3.keys(&format!("{name}/")),
            )
        });
        let (partitions, groups, objects) = rest.await.expect("it is looked at");
        Holdings {
            rows,
            partitions,
            groups,
            objects,
        }
    }
}

/// What the doctor says of one thing.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) check: String,
    pub(super) level: String,
    pub(super) message: String,
    pub(super) mend: String,
}

/// The tables of a database, each with how many rows it has.
async fn rows(url: &str) -> BTreeMap<String, i64> {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'",
    )
    .fetch_all(&mut connection)
    .await
    .expect("the tables");
    let mut rows = BTreeMap::new();
    for table in tables {
        let count = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let count = sqlx::query_scalar(count).fetch_one(&mut connection).await;
        rows.insert(table, count.expect("a count"));
    }
    connection.close().await.ok();
    rows
}

/// How a command ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs a command to its end, which must come within the bound of every wait.
pub(super) async fn run(command: Command) -> Ended {
    let _turn = TURNS.acquire().await.expect("never closed");
    let ended = tokio::task::spawn_blocking(move || {
        let mut child = dying_with_us(&command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let deadline = Instant::now() + PATIENCE;
        // What is said fits into a pipe.
        while child.try_wait().expect("it can be waited for").is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let in_time = child.try_wait().expect("it can be waited for").is_some();
        if !in_time {
            child.kill().ok();
        }
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended {
            code: output.status.code().filter(|_| in_time),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    });
    ended.await.expect("it is run")
}

/// Checks every case, all at once, and tells of all that are not as they should be.
pub(super) async fn check_all(site: &Arc<Site>, cases: Vec<Case>) {
    let mut checks = tokio::task::JoinSet::new();
    for case in cases {
        let site = site.clone();
        checks.spawn(async move { check(&site, &case).await });
    }
    let mut wrong = Vec::new();
    while let Some(checked) = checks.join_next().await {
        wrong.extend(checked.expect("it is checked"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

async fn check(site: &Arc<Site>, case: &Case) -> Vec<String> {
    let scene = Scene::set(site, case).await;
    let before = scene.holdings().await;
    let starts = case.starts.iter().map(|start| {
        let command = scene.start(*start, "127.0.0.1:0");
        async move { (*start, run(command).await) }
    });
    let (started, (doctor, findings)) = tokio::join!(futures::future::join_all(starts), scene.doctor());
    let mut wrong = Vec::new();
    let mut not_so = |what: String| wrong.push(format!("{}: {what}", case.name));
    for (start, ended) in &started {
        if let Some(what) = misses(case, ended) {
            not_so(format!("{start:?}: {what}\n{}", ended.stderr));
        }
    }
    if let Some(what) = misses_of_doctor(case, &doctor, &findings) {
        not_so(format!("doctor: {what}\n{findings:#?}\n{}", doctor.stderr));
    }
    let after = scene.holdings().await;
    if after != before {
        not_so(format!("something was left\nbefore {before:?}\nafter {after:?}"));
    }
    wrong
}

/// What is not as it should be in how a start was refused.
fn misses(case: &Case, ended: &Ended) -> Option<String> {
    if ended.code != Some(DEPENDENCY) {
        return Some(format!("it ended with {:?}", ended.code));
    }
    let line = |kind: &str| {
        let mut lines = ended.stderr.lines().rev();
        lines.find_map(|line| line.strip_prefix(kind)).unwrap_or_default()
    };
    let (message, hint) = (line("error: "), line("hint: "));
    let missing = case.says.iter().find(|text| !message.contains(text.as_str()));
    if let Some(missing) = missing {
        return Some(format!("{missing:?} is not in {message:?}"));
    }
    if !hint.contains(case.hint) {
        return Some(format!("{:?} is not in the hint {hint:?}", case.hint));
    }
    shown_secret(ended)
}

fn misses_of_doctor(case: &Case, ended: &Ended, findings: &[Finding]) -> Option<String> {
    if ended.code != Some(DEPENDENCY) {
        return Some(format!("it ended with {:?}", ended.code));
    }
    let (says, hint): (Vec<&str>, &str) = match case.doctor {
        Some(("", _)) => return shown_secret(ended),
        Some((says, hint)) => (vec![says], hint),
        None => (case.says.iter().map(String::as_str).collect(), case.hint),
    };
    let fails = || findings.iter().filter(|finding| finding.level == "fail");
    let tells = |finding: &Finding| {
        says.iter().all(|text| finding.message.contains(text)) && finding.mend.contains(hint)
    };
    if !fails().any(tells) {
        return Some(format!("nothing fails with {says:?} and {hint:?}"));
    }
    if let Some(other) = fails().find(|finding| !tells(finding)) {
        return Some(format!("something else fails: {other:?}"));
    }
    shown_secret(ended)
}

fn shown_secret(ended: &Ended) -> Option<String> {
    let said = [&ended.stdout, &ended.stderr];
    [PASSWORD, WRONG_SECRET, SECRET_KEY]
        .iter()
        .find(|secret| said.iter().any(|said| said.contains(**secret)))
        .map(|secret| format!("the secret {secret} is shown"))
}
