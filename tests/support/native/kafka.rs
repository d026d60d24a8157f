//! A broker: started, killed, frozen; what its topics hold.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::types::RDKafkaErrorCode;

use super::script;
use super::server::ServerProcess;
use crate::support::PATIENCE;
use crate::support::process::free_port;

/// One broker, KRaft, in a folder.
pub struct Kafka {
    folder: PathBuf,
    port: u16,
    controller_port: u16,
    settings: Vec<String>,
    process: ServerProcess,
}

impl Kafka {
    /// A broker that is not started yet. `settings` are lines of its configuration.
    pub fn prepare(folder: PathBuf, settings: &[&str]) -> Self {
        Self {
            process: ServerProcess::new("kafka", folder.with_extension("log")),
            folder,
            port: free_port(),
            controller_port: free_port(),
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
        }
    }

    /// Starts it and waits until it answers.
    pub fn start(&self) {
        let mut command = script("kafka.sh");
        command
            .arg(&self.folder)
            .args([self.port.to_string(), self.controller_port.to_string()])
            .args(&self.settings);
        self.process.start(command);
        let deadline = Instant::now() + PATIENCE;
        while !self.answers() {
            self.process.assert_coming_up(deadline);
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// `kill -9`.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Whether its process is there; one that ended by itself is forgotten.
    pub fn is_running(&self) -> bool {
        self.process.is_running()
    }

    /// Where clients find it.
    pub fn brokers(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its administration.
    pub fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config().create().expect("an admin client")
    }

    /// Creates a topic as a service would; it keeps its records for ever.
    pub async fn create_topic(&self, topic: &str, partitions: i32) {
        self.create_topic_with(topic, partitions, &[("retention.ms", "-1")])
            .await;
    }

    /// The same with these settings.
    pub async fn create_topic_with(&self, topic: &str, partitions: i32, settings: &[(&str, &str)]) {
        let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1))
            .set("message.timestamp.type", "LogAppendTime");
        for (name, value) in settings {
            new = new.set(name, value);
        }
        let created = self
            .admin()
            .create_topics(&[new], &AdminOptions::new())
            .await
            .expect("an answer");
        for outcome in created {
            outcome.expect("the topic is created");
        }
    }

    /// Deletes a topic, and waits until it is gone.
    pub async fn delete_topic(&self, topic: &str) {
        let admin = self.admin();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let outcomes = admin.delete_topics(&[topic], &AdminOptions::new()).await;
            let outcome = outcomes.expect("an answer").pop().expect("an outcome");
            if matches!(outcome, Err((_, RDKafkaErrorCode::UnknownTopicOrPartition))) {
                return;
            }
            assert!(Instant::now() < deadline, "the topic stays: {outcome:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The first and the next offset of a partition.
    pub fn watermarks(&self, topic: &str, partition: i32) -> (i64, i64) {
        let consumer: BaseConsumer = self.config().create().expect("a client");
        let marks = consumer.fetch_watermarks(topic, partition, Duration::from_secs(10));
        marks.expect("watermarks")
    }

    fn answers(&self) -> bool {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", format!("127.0.0.1:{}", self.port));
        config.set_log_level(rdkafka::config::RDKafkaLogLevel::Emerg);
        let consumer: BaseConsumer = config.create().expect("a client");
        consumer.fetch_metadata(None, Duration::from_millis(500)).is_ok()
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.brokers());
        config
    }
}
