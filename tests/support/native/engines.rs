//! One set of engines for a test binary, or a set of a test's own that it may mistreat.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::sync::OnceCell;

use super::kafka::Kafka;
use super::postgres::Postgres;
use super::s3::S3;
use crate::support::stack::engines_run_in_containers;

/// A broker, a database server and an S3 server.
pub struct Engines {
    pub kafka: Kafka,
    pub postgres: Postgres,
    pub s3: S3,
    folder: TempDir,
}

const PREFIX: &str = "wakelog-engines-";

impl Engines {
    /// The engines of this test binary: started once, ended with it. Tests share them, each with a topic and a database of
    /// its own, and leave them alone.
    pub async fn shared() -> Arc<Self> {
        static SHARED: OnceCell<Arc<Engines>> = OnceCell::const_new();
        let start = || async {
            Arc::new(match engines_run_in_containers() {
                true => Engines::in_containers().await,
                false => Engines::own().await,
            })
        };
        Arc::clone(SHARED.get_or_init(start).await)
    }

    /// Engines of a test's own.
    pub async fn own() -> Self {
        let engines = Self::prepare(&[], &[]);
        engines.start().await;
        engines
    }

    /// Engines in containers: for tests that leave them alone.
    async fn in_containers() -> Self {
        let mut engines = Self::prepare(&[], &[]);
        engines.kafka.set_in_container();
        engines.postgres.set_in_container();
        engines.s3.set_in_container();
        engines.start().await;
        engines
    }

    /// Engines that are not started yet, with further settings.
    pub fn prepare(kafka: &[&str], postgres: &[&str]) -> Self {
        Self::prepare_at(kafka, None, postgres, None)
    }

    /// Engines of a test's own with three brokers.
    pub async fn cluster(kafka: &[&str]) -> Self {
        let mut engines = Self::prepare(&[], &[]);
        engines.kafka = Kafka::prepare_cluster(&engines.folder.path().join("kafka"), kafka);
        engines.start().await;
        engines
    }

    /// The same, with one of them in a folder of the test's.
    pub fn prepare_at(
        kafka: &[&str],
        kafka_at: Option<&Path>,
        postgres: &[&str],
        postgres_at: Option<&Path>,
    ) -> Self {
        remove_what_the_dead_left();
        let folder = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .tempdir()
            .expect("a folder");
        // The database server runs as another user.
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), mode).expect("the folder's mode");
        let home = |name: &str, at: Option<&Path>| at.unwrap_or(folder.path()).join(name);
        Self {
            kafka: Kafka::prepare(home("kafka", kafka_at), kafka),
            postgres: Postgres::prepare(home("postgres", postgres_at), postgres),
            s3: S3::prepare(home("s3", None)),
            folder,
        }
    }

    /// Starts all of them.
    pub async fn start(&self) {
        self.s3.start();
        self.kafka.start();
        self.postgres.start().await;
    }

    /// Where they keep everything.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The shared engines' folder outlives its process: nobody drops what is static, and a killed test drops nothing.
fn remove_what_the_dead_left() {
    let folders = std::fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten()
        .flatten();
    for folder in folders {
        let name = folder.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            std::fs::remove_dir_all(folder.path()).ok();
        }
    }
}
