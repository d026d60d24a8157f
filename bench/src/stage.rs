//! A topic, a database and a folder of the benchmark's own, for one measure. Nothing of the user's is touched.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use rand::RngCore as _;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, PgPool};
use tempfile::TempDir;
use url::Url;
use wakelog_store::Store;

use crate::bucket::Bucket;
use crate::{Error, Measure, Options};

/// Partitions of the topic, and so workers of the persister.
pub(crate) const PARTITIONS: i32 = 8;

/// The account that all sessions belong to.
const ACCOUNT: &str = "bench";

/// How long the broker may take for a topic.
const BROKER_WAIT: Duration = Duration::from_secs(20);

/// A topic, a database and a folder of the benchmark's own.
pub(crate) struct Stage {
    /// The services' log.
    pub(crate) stream: wakelog_stream::Options,
    /// The same for what a raw producer writes.
    pub(crate) raw_stream: wakelog_stream::Options,
    /// The services' database.
    pub(crate) database_url: String,
    /// The stage's part of the bucket; there if its measure needs one.
    pub(crate) bucket: Option<Bucket>,
    /// What callers say who they are.
    pub(crate) caller_token: String,
    name: String,
    admin: PgConnectOptions,
    folder: TempDir,
}

impl Stage {
    /// Makes topics, database, secrets and the configuration of the services.
    pub(crate) async fn set_up(options: &Options, measure: Measure) -> Result<Self, Error> {
        let name = format!("wakelog_bench_{}", random_hex(6));
        let stream = |topic: String| {
            let mut stream = wakelog_stream::Options::new(&options.brokers, topic);
            stream.group.clone_from(&name);
            stream.partitions = PARTITIONS;
            stream.replication = options.replication;
            stream.overrides.clone_from(&options.kafka);
            stream
        };
        let wrong = |error| Error::Options(format!("the database URL: {error}"));
        let mut database_url = Url::parse(&options.database_url).map_err(wrong)?;
        database_url.set_path(&format!("/{name}"));
        let folder = tempfile::tempdir().map_err(|error| Error::io("a temporary folder", error))?;
        // The services of the other measures know no archive.
        let archive = options.archive.clone().filter(|_| measure.needs_archive());
        let stage = Self {
            bucket: archive.map(|archive| Bucket::new(archive, &name)),
            stream: stream(name.clone()),
            raw_stream: stream(format!("{name}.raw")),
            database_url: database_url.into(),
            caller_token: random_hex(32),
            admin: PgConnectOptions::from_str(&options.database_url)?.disable_statement_logging(),
            folder,
            name,
        };
        if let Err(error) = stage.fill(options).await {
            stage.tear_down().await;
            return Err(error);
        }
        Ok(stage)
    }

    async fn fill(&self, options: &Options) -> Result<(), Error> {
        self.write_files(options)?;
        let mut admin = PgConnection::connect_with(&self.admin).await?;
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {}", self.name)))
            .execute(&mut admin)
            .await?;
        admin.close().await?;
        let store = Store::connect(wakelog_store::Options::new(&self.database_url)).await?;
        let migrated = store.migrate().await;
        store.close().await;
        migrated?;
        wakelog_stream::ensure_topic(&self.stream).await?;
        wakelog_stream::ensure_topic(&self.raw_stream).await?;
        Ok(())
    }

    fn write_files(&self, options: &Options) -> Result<(), Error> {
        let write = |name: &str, text: &str| {
            std::fs::write(self.path(name), text).map_err(|error| Error::io(name, error))
        };
        write("token-key", &random_hex(32))?;
        write("callers", &format!("{ACCOUNT} {}\n", self.caller_token))?;
        // In a file of a folder that nobody else may enter: a command line can be seen by others.
        let text = |text: &str| toml::Value::String(text.to_owned());
        let path = |name: &str| toml::Value::String(self.path(name).to_string_lossy().into_owned());
        let mut settings = toml::Table::new();
        settings.insert("brokers".to_owned(), text(&options.brokers));
        settings.insert("database_url".to_owned(), text(&self.database_url));
        settings.insert("topic".to_owned(), text(&self.stream.topic));
        settings.insert("group".to_owned(), text(&self.stream.group));
        if let Some(bucket) = &self.bucket {
            bucket.add_to(&mut settings);
        }
        settings.insert("token_key_file".to_owned(), path("token-key"));
        settings.insert("caller_token_file".to_owned(), path("callers"));
        let kafka = options
            .kafka
            .iter()
            .map(|(key, value)| (key.clone(), text(value)));
        settings.insert("kafka".to_owned(), toml::Value::Table(kafka.collect()));
        write("wakelog.toml", &settings.to_string())
    }

    /// A file of the stage.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A pool of the benchmark's own, with as many connections as there are partitions.
    pub(crate) async fn pool(&self) -> Result<PgPool, Error> {
        let options = PgConnectOptions::from_str(&self.database_url)?.disable_statement_logging();
        Ok(PgPoolOptions::new()
            .max_connections(PARTITIONS as u32)
            .connect_with(options)
            .await?)
    }

    /// The stage's part of the bucket, for a measure that needs one.
    pub(crate) fn bucket(&self) -> Result<&Bucket, Error> {
        self.bucket
            .as_ref()
            .ok_or_else(|| Error::Wrong("the stage of this measure has no bucket".to_owned()))
    }

    /// Drops everything. What can't be dropped is said and left: the figures are right all the same.
    pub(crate) async fn tear_down(self) {
        if let Err(error) = self.drop_database().await {
            eprintln!("database {} could not be dropped: {error}", self.name);
        }
        if let Err(error) = self.drop_topics().await {
            eprintln!("topic {} could not be deleted: {error}", self.stream.topic);
        }
        if let Err(error) = self.drop_objects().await {
            eprintln!("objects below {} could not be deleted: {error}", self.name);
        }
    }

    /// A database beside the services' own, empty: the one of this name that was there is dropped.
    pub(crate) async fn make_replayed_database(&self) -> Result<String, Error> {
        let name = self.replayed_name();
        let mut admin = PgConnection::connect_with(&self.admin).await?;
        drop_database(&mut admin, &name).await?;
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut admin)
            .await?;
        admin.close().await?;
        let mut url = Url::parse(&self.database_url)
            .map_err(|error| Error::Options(format!("the database URL: {error}")))?;
        url.set_path(&format!("/{name}"));
        Ok(url.into())
    }

    fn replayed_name(&self) -> String {
        format!("{}_replayed", self.name)
    }

    async fn drop_objects(&self) -> Result<(), Error> {
        match &self.bucket {
            Some(bucket) => bucket.empty().await,
            None => Ok(()),
        }
    }

    async fn drop_database(&self) -> Result<(), Error> {
        let mut admin = PgConnection::connect_with(&self.admin).await?;
        drop_database(&mut admin, &self.replayed_name()).await?;
        drop_database(&mut admin, &self.name).await?;
        admin.close().await?;
        Ok(())
    }

    async fn drop_topics(&self) -> Result<(), Error> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.stream.brokers);
        for (key, value) in &self.stream.overrides {
            config.set(key, value);
        }
        let admin: AdminClient<DefaultClientContext> = config.create()?;
        let bounds = AdminOptions::new().operation_timeout(Some(BROKER_WAIT));
        let topics = [self.stream.topic.as_str(), self.raw_stream.topic.as_str()];
        for outcome in admin.delete_topics(&topics, &bounds).await? {
            if let Err((topic, code)) = outcome {
                return Err(Error::Wrong(format!("{topic} was not deleted: {code}")));
            }
        }
        // A group that nobody joined is not there; one that is lapses by itself.
        admin
            .delete_groups(&[self.stream.group.as_str()], &bounds)
            .await?;
        Ok(())
    }
}

async fn drop_database(admin: &mut PgConnection, name: &str) -> Result<(), Error> {
    sqlx::query(AssertSqlSafe(format!(
        "DROP DATABASE IF EXISTS {name} WITH (FORCE)"
    )))
    .execute(admin)
    .await?;
    Ok(())
}

fn random_hex(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    rand::rng().fill_bytes(&mut random);
    hex::encode(random)
}
