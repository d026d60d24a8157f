//! A server: started, killed, frozen; databases.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::server::ServerProcess;
use super::{container, script};
use crate::support::PATIENCE;
use crate::support::process::{children_of, free_port, signal, signal_if_there};

/// One server in a folder.
pub struct Postgres {
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
    in_container: bool,
    process: ServerProcess,
}

impl Postgres {
    /// A server that is not started yet. `settings` are `name=value`.
    pub fn prepare(folder: PathBuf, settings: &[&str]) -> Self {
        Self {
            process: ServerProcess::new("postgres", folder.with_extension("log")),
            folder,
            port: free_port(),
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
            in_container: false,
        }
    }

    /// Has it run in a container, where its data stays.
    pub fn set_in_container(&mut self) {
        self.in_container = true;
    }

    /// Starts it and waits until it answers.
    pub async fn start(&self) {
        self.spawn();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let tried = tokio::time::timeout(
                Duration::from_secs(5),
                PgConnection::connect(&self.url_of(self.port, "postgres")),
            );
            if let Ok(Ok(connection)) = tried.await {
                connection.close().await.ok();
                return;
            }
            self.process.assert_coming_up(deadline);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn spawn(&self) {
        let mut command = match self.in_container {
            true => container("postgres"),
            false => {
                let mut command = script("postgres.sh");
                command.arg(&self.folder);
                command
            }
        };
        command.arg(self.port.to_string()).args(&self.settings);
        self.process.start(command);
    }

    /// `kill -9` of the postmaster; its children end by themselves when they notice.
    pub async fn kill(&self) {
        self.process.kill();
        // A new postmaster refuses to start while a child of the old one is attached to the shared memory.
        let pid_file = self.folder.join("data/postmaster.pid");
        let shared_memory_key = std::fs::read_to_string(&pid_file).unwrap_or_default();
        let id = shared_memory_key
            .lines()
            .nth(6)
            .and_then(|line| line.split_whitespace().nth(1))
            .and_then(|id| id.parse::<u64>().ok());
        let deadline = Instant::now() + PATIENCE;
        while id.is_some_and(is_attached) {
            assert!(Instant::now() < deadline, "children of the killed server stay");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// An orderly end.
    pub async fn stop(&self) {
        signal("INT", self.process.pid());
        let deadline = Instant::now() + PATIENCE;
        while self.is_running() {
            assert!(Instant::now() < deadline, "the server does not stop");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops the server and every process of it in the middle of whatever they do; [`Self::thaw`] lets them go on.
    pub fn freeze(&self) {
        let postmaster = self.process.pid();
        signal("STOP", postmaster);
        // The postmaster starts no more of them by now.
        for child in children_of(postmaster) {
            signal_if_there("STOP", child);
        }
    }

    /// Lets them go on.
    pub fn thaw(&self) {
        let postmaster = self.process.pid();
        for child in children_of(postmaster) {
            signal_if_there("CONT", child);
        }
        signal("CONT", postmaster);
    }

    /// Ends every connection to a database.
    pub async fn terminate_connections(&self, database: &str) -> Result<i64, sqlx::Error> {
        let mut admin = PgConnection::connect(&self.url("postgres")).await?;
        let ended = sqlx::query_scalar(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1",
        )
        .bind(database)
        .fetch_one(&mut admin)
        .await;
        admin.close().await.ok();
        ended
    }

    /// Whether its process is there; one that ended by itself is forgotten.
    pub fn is_running(&self) -> bool {
        self.process.is_running()
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A database of it.
    pub fn url(&self, database: &str) -> String {
        self.url_of(self.port, database)
    }

    /// A database of it, reached through another port.
    pub fn url_of(&self, port: u16, database: &str) -> String {
        format!("postgres://wakelog@127.0.0.1:{port}/{database}")
    }

    /// Creates a database.
    pub async fn create_database(&self, name: &str) {
        let mut admin = PgConnection::connect(&self.url("postgres"))
            .await
            .expect("an administrator's connection");
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut admin)
            .await
            .expect("the database is created");
        admin.close().await.ok();
    }
}

impl Drop for Postgres {
    /// At once, but in order: a killed server leaves shared memory behind.
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        if process.ended().is_none() {
            signal("QUIT", process.pid());
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while process.ended().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Whether a process is attached to a System V shared memory segment.
fn is_attached(id: u64) -> bool {
    let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    segments.lines().skip(1).any(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns.get(1).and_then(|column| column.parse().ok()) == Some(id)
            && columns.get(6).is_some_and(|attached| *attached != "0")
    })
}
