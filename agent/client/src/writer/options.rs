//! How a writer behaves.

use std::time::Duration;

use wakelog_model::limits::REMEMBERED_ENTRIES;
use wakelog_proto::v1::AckLevel;

/// How a writer behaves.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// How durable an entry must be before it counts as acknowledged.
    pub ack_level: AckLevel,
    /// Entries that may be unacknowledged at a time; never more than the server allows.
    pub max_unacked_entries: usize,
    /// Bytes of unacknowledged entries kept in memory; never more than the server allows. A single larger entry is still
    /// taken.
    pub max_unacked_bytes: u64,
    /// How long the server may say nothing while an answer is due.
    pub silence: Duration,
    /// How long the writer goes on trying without any progress before it gives up.
    pub give_up_after: Duration,
    /// The first delay between two tries.
    pub first_delay: Duration,
    /// The longest delay between two tries.
    pub longest_delay: Duration,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            ack_level: AckLevel::Log,
            max_unacked_entries: REMEMBERED_ENTRIES,
            max_unacked_bytes: 16 * 1024 * 1024,
            silence: Duration::from_secs(30),
            give_up_after: Duration::from_secs(120),
            first_delay: Duration::from_millis(100),
            longest_delay: Duration::from_secs(5),
        }
    }
}
