//! What can be configured, and which values make no sense.

use std::time::Duration;

use wakelog_model::limits::{MAX_ENTRY_BYTES, MAX_UNARY_ENTRY_BYTES, PART_SIZE};

use crate::Error;

#[cfg(test)]
mod tests;

/// How ingest behaves. [`Options::new`] has the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The transcript topic.
    pub topic: String,
    /// The largest entry that is taken, in plain bytes.
    pub max_entry_bytes: u64,
    /// Plain bytes of one lifetime that may be unacknowledged. A single larger entry is still taken.
    pub max_unacked_bytes: u64,
    /// Plain bytes over all lifetimes that may be on their way to the log.
    pub max_in_flight_bytes: u64,
    /// Lifetimes whose cache is kept at a time.
    pub max_lanes: usize,
    /// How long an idle lifetime's cache is kept.
    pub lane_idle: Duration,
    /// How often the fences of live lifetimes are read.
    pub fence_interval: Duration,
    /// With fences older than this there is no `LOG` ack.
    pub max_fence_age: Duration,
    /// How often progress is read while somebody waits for it.
    pub poll_interval: Duration,
    /// How long a request waits for the persister to pass the partition's end.
    pub barrier_wait: Duration,
    /// How long a request waits for its ack.
    pub ack_wait: Duration,
    /// How long a stream that is beyond its window waits for room.
    pub window_wait: Duration,
    /// How long a stream waits for room in the producer's queue.
    pub queue_full_wait: Duration,
    /// How long one read of the hot tail or of the partition's end may take.
    pub read_wait: Duration,
    /// How long a stream may take to say hello.
    pub hello_wait: Duration,
    /// How long after its generation was raised a bind may still reach the log: what the reconstructor may take to publish
    /// it, and its message time-out, and something for clocks. A raised binding generation lapses after it.
    pub bind_message_timeout: Duration,
    /// How long a shutdown waits for what is unacknowledged.
    pub drain_wait: Duration,
}

impl Options {
    /// The defaults for a topic.
    pub fn new(topic: impl Into<String>) -> Self {
        Self {
            topic: topic.into(),
            max_entry_bytes: MAX_ENTRY_BYTES,
            max_unacked_bytes: 16 * 1024 * 1024,
            max_in_flight_bytes: 64 * 1024 * 1024,
            max_lanes: 100_000,
            lane_idle: Duration::from_secs(600),
            fence_interval: Duration::from_secs(1),
            max_fence_age: Duration::from_secs(30),
            poll_interval: Duration::from_millis(8),
            barrier_wait: Duration::from_secs(10),
            ack_wait: Duration::from_secs(30),
            window_wait: Duration::from_secs(30),
            queue_full_wait: Duration::from_secs(5),
            read_wait: Duration::from_secs(10),
            hello_wait: Duration::from_secs(30),
            bind_message_timeout: Duration::from_secs(10),
            drain_wait: Duration::from_secs(10),
        }
    }

    pub(crate) fn validate(&self) -> Result<(), Error> {
        let invalid = |option, problem| Err(Error::InvalidOption { option, problem });
        if self.topic.is_empty() {
            return invalid("topic", "it is empty");
        }
        if !(1..=MAX_ENTRY_BYTES).contains(&self.max_entry_bytes) {
            return invalid("max_entry_bytes", "it must be 1 byte to 1 GiB");
        }
        if self.max_unacked_bytes < PART_SIZE as u64 {
            return invalid("max_unacked_bytes", "a part of 512 KiB would never fit");
        }
        if self.max_in_flight_bytes < MAX_UNARY_ENTRY_BYTES as u64 {
            return invalid("max_in_flight_bytes", "an entry of 4 MiB would never fit");
        }
        if self.max_in_flight_bytes > 1 << 40 {
            return invalid("max_in_flight_bytes", "it must be at most 1 TiB");
        }
        if self.max_lanes == 0 {
            return invalid("max_lanes", "it must be at least 1");
        }
        if self.fence_interval.is_zero() || self.poll_interval.is_zero() {
            return invalid("fence_interval", "the intervals must not be zero");
        }
        if self.max_fence_age < self.fence_interval * 2 {
            return invalid("max_fence_age", "it must be at least twice the fence interval");
        }
        Ok(())
    }
}
