//! One broker: its addresses, its settings, its process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::metadata::Metadata;

use super::server::ServerProcess;
use super::{container, script};
use crate::support::PATIENCE;
use crate::support::process::{free_port, signal};

/// How often a broker is asked until the answer is its own.
const TRIES: u32 = 10;

/// One broker, KRaft, in a folder.
pub struct Broker {
    folder: PathBuf,
    /// Where it listens to clients; what stands between may be a link.
    pub(super) port: u16,
    pub(super) controller_port: u16,
    /// Where it listens to other brokers.
    pub(super) internal_port: u16,
    settings: Vec<String>,
    variables: Vec<(&'static str, String)>,
    in_container: bool,
    process: ServerProcess,
}

impl Broker {
    /// A broker that is not started yet. `settings` are lines of its configuration.
    pub(super) fn prepare(folder: PathBuf, settings: &[&str]) -> Self {
        Self {
            process: ServerProcess::new("kafka", folder.with_extension("log")),
            folder,
            port: free_port(),
            controller_port: free_port(),
            internal_port: free_port(),
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
            variables: Vec::new(),
            in_container: false,
        }
    }

    /// Adds settings, and variables of its process, before the first start.
    pub(super) fn configure(&mut self, settings: Vec<String>, variables: Vec<(&'static str, String)>) {
        self.settings.extend(settings);
        self.variables.extend(variables);
    }

    /// Has it run in a container, with the settings of the image alone.
    pub(super) fn set_in_container(&mut self) {
        self.in_container = true;
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts it.
    pub(super) fn spawn(&self) {
        let ports = [self.port.to_string(), self.controller_port.to_string()];
        if self.in_container {
            let mut command = container("kafka");
            command.args(ports);
            self.process.start(command);
            return;
        }
        let mut command = script("kafka.sh");
        command
            .arg(&self.folder)
            .args(ports)
            .args(&self.settings)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        self.process.start(command);
    }

    /// Waits until it answers.
    pub(super) fn wait(&self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.answers() {
            self.process.assert_coming_up(deadline);
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Starts it and waits until it answers.
    pub fn start(&self) {
        self.spawn();
        self.wait();
    }

    /// `kill -9`.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Stops it in the middle of whatever it does; [`Self::thaw`] lets it go on.
    pub fn freeze(&self) {
        signal("STOP", self.process.pid());
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        signal("CONT", self.process.pid());
    }

    /// Whether its process is there; one that ended by itself is forgotten.
    pub fn is_running(&self) -> bool {
        self.process.is_running()
    }

    /// What it, and no other one, knows of a topic; `None` if it does not say. `number` is its place in the cluster.
    pub(super) fn metadata(&self, number: usize, topic: &str) -> Option<Metadata> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", format!("127.0.0.1:{}", self.port));
        config.set_log_level(rdkafka::config::RDKafkaLogLevel::Emerg);
        for _ in 0..TRIES {
            // A client asks whichever broker it has found by then.
            let consumer: BaseConsumer = config.create().expect("a client");
            let metadata = consumer
                .fetch_metadata(Some(topic), Duration::from_secs(2))
                .ok()?;
            let answered = metadata.orig_broker_id();
            if answered == -1 || usize::try_from(answered) == Ok(number + 1) {
                return Some(metadata);
            }
        }
        None
    }

    fn answers(&self) -> bool {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", format!("127.0.0.1:{}", self.port));
        config.set_log_level(rdkafka::config::RDKafkaLogLevel::Emerg);
        let consumer: BaseConsumer = config.create().expect("a client");
        consumer.fetch_metadata(None, Duration::from_millis(500)).is_ok()
    }
}
