//! A broker: started, killed, frozen; what its topics hold.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::types::RDKafkaErrorCode;

use super::{on_a_lasting_thread, script};
use crate::support::PATIENCE;
use crate::support::process::{Process, end_of, free_port};

/// One broker, KRaft, in a folder.
pub struct Kafka {
    folder: PathBuf,
    port: u16,
    controller_port: u16,
    advertised_port: Option<u16>,
    settings: Vec<String>,
    process: Mutex<Option<Process>>,
}

impl Kafka {
    /// A broker that is not started yet. `settings` are lines of its configuration.
    pub fn prepare(folder: PathBuf, settings: &[&str]) -> Self {
        Self {
            folder,
            port: free_port(),
            controller_port: free_port(),
            advertised_port: None,
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
            process: Mutex::new(None),
        }
    }

    /// Clients are told to come through this port, where a proxy stands.
    pub fn advertise(&mut self, port: u16) {
        self.advertised_port = Some(port);
    }

    /// Starts it and waits until it answers.
    pub fn start(&self) {
        assert!(!self.is_running(), "the broker is up");
        let mut command = script("kafka.sh");
        command
            .arg(&self.folder)
            .args([self.port.to_string(), self.controller_port.to_string()])
            .args(&self.settings);
        if let Some(port) = self.advertised_port {
            command.env("ADVERTISED_PORT", port.to_string());
        }
        let log = self.folder.with_extension("log");
        let process = on_a_lasting_thread(move || Process::start("kafka", &command, &log));
        *self.process.lock().expect("not poisoned") = Some(process);
        let deadline = Instant::now() + PATIENCE;
        while !self.answers() {
            assert!(
                self.is_running() && Instant::now() < deadline,
                "kafka does not answer\n{}",
                end_of(&self.folder.with_extension("log"))
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// `kill -9`.
    pub fn kill(&self) {
        self.take().expect("the broker is up").kill();
    }

    /// Whether its process is there; one that ended by itself is forgotten.
    pub fn is_running(&self) -> bool {
        let mut process = self.process.lock().expect("not poisoned");
        if process.as_mut().is_some_and(|process| process.ended().is_some()) {
            *process = None;
        }
        process.is_some()
    }

    fn take(&self) -> Option<Process> {
        self.process.lock().expect("not poisoned").take()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process
            .lock()
            .expect("not poisoned")
            .as_ref()
            .expect("the broker is up")
            .pid()
    }

    /// Where it listens itself.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where clients find it.
    pub fn brokers(&self) -> String {
        format!("127.0.0.1:{}", self.advertised_port.unwrap_or(self.port))
    }

    /// Its administration.
    pub fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config().create().expect("an admin client")
    }

    /// Creates a topic as a service would.
    pub async fn create_topic(&self, topic: &str, partitions: i32) {
        let new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1))
            .set("message.timestamp.type", "LogAppendTime")
            .set("retention.ms", "-1");
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

    /// A client of the broker itself, past any proxy that it advertises is not possible: it goes where clients go.
    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.brokers());
        config
    }
}
