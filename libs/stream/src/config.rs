//! librdkafka's settings, made from [`Options`]. Why each one is what it is stands beside it.

use std::time::Duration;

use rdkafka::ClientConfig;

use crate::error::Error;
use crate::options::Options;

#[cfg(test)]
mod tests;

/// Settings that the guarantees rest on. An override of one of them is an error, not a surprise later.
const FIXED: &[&str] = &[
    "acks",
    "auto.offset.reset",
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "group.protocol",
    "heartbeat.interval.ms",
    "max.in.flight",
    "max.in.flight.requests.per.connection",
    "max.poll.interval.ms",
    "message.timeout.ms",
    "delivery.timeout.ms",
    "partition.assignment.strategy",
    "request.required.acks",
    "session.timeout.ms",
    "transactional.id",
];

/// `ssl` and `sasl_ssl` of it need a library that librdkafka is built without.
const SECURITY_PROTOCOL: &str = "security.protocol";

/// How often clients look for new partitions and moved leaders.
const METADATA_REFRESH: Duration = Duration::from_secs(10);

/// First guess for one partition's share of a fetch; librdkafka raises it for a larger record.
const PARTITION_FETCH_BYTES: usize = 1 << 20;

fn base(options: &Options) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &options.brokers)
        .set("client.id", &options.client_id)
        // Bounds what a silent broker costs. Joining a group has a longer bound of its own.
        .set("socket.timeout.ms", millis(options.request_timeout))
        .set("socket.keepalive.enable", "true")
        .set(
            "socket.connection.setup.timeout.ms",
            millis(options.request_timeout.max(Duration::from_secs(1))),
        )
        .set("topic.metadata.refresh.interval.ms", millis(METADATA_REFRESH))
        // The default of 10 s would keep a service away long after its broker is back.
        .set("reconnect.backoff.max.ms", "1000");
    config
}

fn finish(mut config: ClientConfig, options: &Options) -> Result<ClientConfig, Error> {
    for (key, value) in &options.overrides {
        if FIXED.contains(&key.as_str()) {
            let reason = "the guarantees rest on it, it can't be overridden".to_owned();
            return Err(Error::Config {
                key: key.clone(),
                reason,
            });
        }
        if key == SECURITY_PROTOCOL && value.to_ascii_lowercase().ends_with("ssl") {
            return Err(Error::TlsNotBuilt {
                key: key.clone(),
                value: value.clone(),
            });
        }
        config.set(key, value);
    }
    Ok(config)
}

/// The producer's settings. Public for what compares itself with [`Producer`](crate::Producer): a benchmark's raw
/// producer has to have the same.
pub fn producer(options: &Options) -> Result<ClientConfig, Error> {
    let mut config = base(options);
    config
        .set("acks", "all")
        .set("enable.idempotence", "true")
        // Batching comes from what is in flight; lingering would cost every lone publish its full length.
        .set("linger.ms", "0")
        // Bodies are compressed before they get here.
        .set("compression.type", "none")
        .set("message.timeout.ms", millis(options.message_timeout))
        .set(
            "queue.buffering.max.kbytes",
            kbytes(options.producer_buffer_bytes),
        );
    finish(config, options)
}

/// For topic administration, which librdkafka does with a producer.
pub(crate) fn admin(options: &Options) -> Result<ClientConfig, Error> {
    finish(base(options), options)
}

/// For watermarks and metadata: a consumer without a group, so it never joins, commits or creates a topic.
pub(crate) fn metadata(options: &Options) -> Result<ClientConfig, Error> {
    finish(base(options), options)
}

/// For asking how far the group has come. It never joins.
pub(crate) fn group_lookup(options: &Options) -> Result<ClientConfig, Error> {
    let mut config = base(options);
    config
        .set("group.id", &options.group)
        .set("enable.auto.commit", "false");
    finish(config, options)
}

/// For the group consumer.
pub(crate) fn group_consumer(options: &Options) -> Result<ClientConfig, Error> {
    let session_timeout = options.session_timeout;
    let mut config = consumer(options);
    config
        .set("group.id", &options.group)
        .set("partition.assignment.strategy", "cooperative-sticky")
        .set("session.timeout.ms", millis(session_timeout))
        .set("heartbeat.interval.ms", millis(session_timeout / 5))
        // The poll thread is never away for longer than the bounds of a rebalance callback, which are below the
        // session time-out; a rebalance waits this long for a member that is stuck but still sends heartbeats.
        .set(
            "max.poll.interval.ms",
            millis((session_timeout * 3).max(Duration::from_secs(60))),
        );
    finish(config, options)
}

/// For reading a range: partitions are assigned by hand. librdkafka wants a group id even so; none is ever joined.
pub(crate) fn range_consumer(options: &Options) -> Result<ClientConfig, Error> {
    let mut config = consumer(options);
    config.set("group.id", format!("{}-reader", options.group));
    finish(config, options)
}

fn consumer(options: &Options) -> ClientConfig {
    let mut config = base(options);
    config
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        // A hole made by retention is an error, never a silent jump.
        .set("auto.offset.reset", "error")
        .set(
            "fetch.wait.max.ms",
            millis(options.fetch_wait.min(options.request_timeout / 2)),
        )
        // One queue for all partitions. It may be overshot by about one fetch.
        .set(
            "queued.max.messages.kbytes",
            kbytes(options.consumer_buffer_bytes),
        )
        .set("fetch.message.max.bytes", PARTITION_FETCH_BYTES.to_string())
        .set(
            "fetch.max.bytes",
            options
                .consumer_buffer_bytes
                .max(PARTITION_FETCH_BYTES)
                .to_string(),
        )
        // With a queue this small the default of one second would be what limits reading.
        .set("fetch.queue.backoff.ms", "10")
        .set("fetch.error.backoff.ms", "200");
    config
}

fn millis(duration: Duration) -> String {
    duration.as_millis().max(1).to_string()
}

fn kbytes(bytes: usize) -> String {
    (bytes / 1024).max(1).to_string()
}
