//! Engines of the test's own, whose topic the test eats itself, and databases to build.

use std::sync::Arc;

use rdkafka::admin::{AdminOptions, NewTopic, TopicReplication};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use wakelog_client::Connection;

use crate::archive::{is_stopped, until};
use crate::support::native::fleet::PARTITIONS;
use crate::support::native::{Engines, Kind, NativeStack};
use crate::support::process::Process;

/// A state is due after half of this. The broker itself eats nothing while the test runs.
const RETENTION_MS: &str = "4000";

const BOB: &str = "the-token-of-bob-0000000000000000000000000002";

/// A fleet, and what may become of its engines.
pub(super) struct Place {
    pub(super) stack: NativeStack,
    engines: Arc<Engines>,
}

impl Place {
    pub(super) async fn prepare() -> Self {
        let never = [
            "log.retention.check.interval.ms=3600000",
            "log.initial.task.delay.ms=3600000",
        ];
        let engines = Engines::prepare(&never, &[]);
        engines.start().await;
        let engines = Arc::new(engines);
        let mut stack = NativeStack::prepare_on(engines.clone()).await;
        stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", "40000");
        stack.set("WAKELOG_ARCHIVE_RESWEEP_SECONDS", "1");
        stack.set_callers(&format!("local {}\nbob {BOB}\n", stack.token()));
        let topic = NewTopic::new(stack.topic(), PARTITIONS, TopicReplication::Fixed(1))
            .set("message.timestamp.type", "LogAppendTime")
            .set("retention.ms", RETENTION_MS);
        let (admin, options) = (engines.kafka.admin(), AdminOptions::new());
        let created = admin.create_topics(&[topic], &options).await;
        for outcome in created.expect("an answer") {
            outcome.expect("the topic is created");
        }
        Self { stack, engines }
    }

    pub(super) async fn connect_as_bob(&self) -> Connection {
        let endpoint = self.stack.endpoint(Kind::Reconstruct, 0);
        Connection::connect(&endpoint, Some(BOB.to_owned()))
            .await
            .expect("a connection")
    }

    /// Waits until the states of the archive hold everything that the topic has.
    pub(super) async fn covered(&self) {
        until("every partition is covered", async || {
            (0..PARTITIONS).all(|partition| self.covered_offset(partition) == self.end(partition))
        })
        .await;
    }

    fn end(&self, partition: i32) -> i64 {
        self.engines.kafka.watermarks(self.stack.topic(), partition).1
    }

    pub(super) fn covered_offset(&self, partition: i32) -> i64 {
        let keys = self.stack.objects(&format!("covered/{:020}-{partition:020}-", 1));
        let offsets = keys.iter().filter_map(|key| key.rsplit('-').next()?.parse().ok());
        offsets.max().unwrap_or(0)
    }

    /// The topic loses what the archive covers: on the first partition one record less.
    pub(super) async fn eat_what_is_covered(&self) {
        self.eat(|place, partition| place.covered_offset(partition) - i64::from(partition == 0))
            .await;
    }

    /// The same, but for one partition, which loses nothing.
    pub(super) async fn eat_what_is_covered_but(&self, whole: i32) {
        self.eat(|place, partition| match partition == whole {
            true => 0,
            false => place.covered_offset(partition),
        })
        .await;
    }

    /// The topic loses all that it has.
    pub(super) async fn eat_everything(&self) {
        self.eat(Self::end).await;
    }

    async fn eat(&self, before: impl Fn(&Self, i32) -> i64) {
        let below: Vec<(i32, i64)> = (0..PARTITIONS)
            .map(|partition| (partition, before(self, partition).max(0)))
            .collect();
        self.engines.kafka.eat(self.stack.topic(), &below).await;
    }

    /// A new and empty database.
    pub(super) async fn database(&self, name: &str) -> String {
        let name = format!("{}_{name}", self.stack.topic());
        self.engines.postgres.create_database(&name).await;
        self.engines.postgres.url(&name)
    }

    /// The same with the schema, as a service may use it.
    pub(super) async fn migrated_database(&self, name: &str) -> String {
        let url = self.database(name).await;
        let migrated = self.stack.command(&["migrate", "--database-url", &url]).output();
        assert!(migrated.expect("migrate runs").status.success());
        url
    }

    /// The database of the fleet is lost.
    pub(super) async fn drop_database(&self) {
        let mut admin = PgConnection::connect(&self.engines.postgres.url("postgres"))
            .await
            .expect("an administrator's connection");
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.stack.topic());
        sqlx::raw_sql(AssertSqlSafe(drop))
            .execute(&mut admin)
            .await
            .expect("it is dropped");
        admin.close().await.ok();
    }

    /// What the fold says of every session.
    pub(super) async fn fold_states(&self, url: &str) -> Vec<(String, Vec<u8>, bool)> {
        let mut connection = PgConnection::connect(url).await.expect("a connection");
        sqlx::query_as("SELECT session_id::text, fold_state, erased FROM agent_sessions ORDER BY session_id")
            .fetch_all(&mut connection)
            .await
            .expect("rows")
    }

    /// Waits until so many parts of unfinished entries are stored.
    pub(super) async fn unfinished_parts(&self, parts: i64) {
        let url = self.stack.database_url();
        until("the parts are stored", async || {
            let mut connection = PgConnection::connect(&url).await.expect("a connection");
            let stored: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM agent_session_transcript_entries JOIN agent_sessions USING (session_id)
                 WHERE entry_seq > last_entry_seq",
            )
            .fetch_one(&mut connection)
            .await
            .expect("a count");
            stored == parts
        })
        .await;
    }

    /// `wakelog replay --from-archive`, frozen at a pass of a failpoint.
    pub(super) async fn frozen_replay(&self, into: &str, at: &str) -> Process {
        let mut command = self
            .stack
            .command(&["replay", "--into", into, "--from-archive", "--json"]);
        command.env("WAKELOG_TEST_FREEZE", at);
        let process = Process::start("replay", &command, &self.stack.folder().join("replay.log"));
        let pid = process.pid();
        until("the replay freezes", async || is_stopped(pid).await).await;
        process
    }

    /// A number that a database says.
    pub(super) async fn number(&self, url: &str, sql: &'static str) -> i64 {
        let mut connection = PgConnection::connect(url).await.expect("a connection");
        let number = sqlx::query_scalar(sql).fetch_one(&mut connection).await;
        connection.close().await.ok();
        number.expect("a number")
    }

    /// `wakelog replay`.
    pub(super) fn replay(&self, into: &str, more: &[&str], failpoints: &str) -> Replayed {
        let mut replay = self.stack.command(&["replay", "--into", into]);
        if !failpoints.is_empty() {
            replay.env("FAILPOINTS", failpoints);
        }
        let output = replay.args(more).output().expect("replay runs");
        Replayed {
            code: output.status.code().expect("a code"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

/// How a replay ended.
pub(super) struct Replayed {
    pub(super) code: i32,
    stdout: String,
    stderr: String,
}

impl Replayed {
    #[track_caller]
    pub(super) fn with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(super) fn saying(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "{}", self.stderr);
        self
    }

    pub(super) fn text(self) -> String {
        self.stdout
    }

    pub(super) fn object(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).expect("a JSON object")
    }
}

/// What a report says is missing of a session.
pub(super) fn missing_of(report: &serde_json::Value, session: &str) -> Vec<serde_json::Value> {
    let missing = report["missing"].as_array().expect("a list");
    let of_session = missing.iter().filter(|missing| missing["session_id"] == session);
    of_session.cloned().collect()
}
