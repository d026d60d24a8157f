//! What a service may choose about its broker clients.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What a service may choose about its broker clients. Start from [`Options::new`] or [`Options::embedded`].
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// `host:port`, several separated by commas.
    pub brokers: String,
    /// The topic.
    pub topic: String,
    /// The consumer group of [`GroupConsumer`](crate::GroupConsumer).
    pub group: String,
    /// The name that brokers log.
    pub client_id: String,
    /// Partitions of the topic, if it has to be created.
    pub partitions: i32,
    /// Replication factor of the topic, if it has to be created.
    pub replication: i32,
    /// The broker is the embedded one: what it does not know is left out.
    pub embedded: bool,
    /// How long a publish may take before it fails with an unknown effect.
    pub message_timeout: Duration,
    /// How long the group waits for a silent member. What a partition owner may take in a rebalance is half of it.
    pub session_timeout: Duration,
    /// How long the broker may hold a fetch that has nothing to give. A real broker answers as soon as there is
    /// something; the embedded one does not, so it must be short there.
    pub fetch_wait: Duration,
    /// How long one request to a broker may take.
    pub request_timeout: Duration,
    /// Bytes of records that the consumer holds for its user. As much again, about, is held by the client library.
    pub consumer_buffer_bytes: usize,
    /// Records that wait in one partition's queue.
    pub consumer_queue_records: usize,
    /// Bytes of records that the producer holds until they are acknowledged.
    pub producer_buffer_bytes: usize,
    /// How often in a row the consumer may leave and join its group before it gives up.
    pub rejoin_limit: u32,
    /// Further librdkafka settings, for connections (`security.protocol`, `sasl.*`, …). Those that the guarantees
    /// rest on can't be set here.
    pub overrides: BTreeMap<String, String>,
}

impl Options {
    /// Sane values for a real broker.
    pub fn new(brokers: impl Into<String>, topic: impl Into<String>) -> Self {
        Self {
            brokers: brokers.into(),
            topic: topic.into(),
            group: "wakelog".to_owned(),
            client_id: "wakelog".to_owned(),
            partitions: 8,
            replication: 1,
            embedded: false,
            message_timeout: Duration::from_secs(5),
            session_timeout: Duration::from_secs(10),
            fetch_wait: Duration::from_millis(500),
            request_timeout: Duration::from_secs(10),
            consumer_buffer_bytes: 16 << 20,
            // More than one fetch brings of small records: a full queue holds up the other partitions.
            consumer_queue_records: 8192,
            producer_buffer_bytes: 32 << 20,
            rejoin_limit: 20,
            overrides: BTreeMap::new(),
        }
    }

    /// Sane values for the embedded broker.
    pub fn embedded(brokers: impl Into<String>, topic: impl Into<String>) -> Self {
        Self {
            embedded: true,
            fetch_wait: Duration::from_millis(10),
            ..Self::new(brokers, topic)
        }
    }
}

// By hand: an override may be a password.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("brokers", &self.brokers)
            .field("topic", &self.topic)
            .field("group", &self.group)
            .field("client_id", &self.client_id)
            .field("embedded", &self.embedded)
            .field("message_timeout", &self.message_timeout)
            .field("session_timeout", &self.session_timeout)
            .field("request_timeout", &self.request_timeout)
            .field("overrides", &self.overrides.keys())
            .finish_non_exhaustive()
    }
}
