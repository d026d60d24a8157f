//! The metrics of the persister, by name.

use std::time::Duration;

use metrics::{counter, gauge, histogram};

use crate::counts::Counts;
use crate::status::StopReason;

/// Makes the counter that is there to wake somebody: its first event is a rise only if it was 0 before.
pub(crate) fn begin() {
    counter!("wakelog_persister_lost_commits_total").increment(0);
}

/// Counts a batch whose COMMIT is known.
pub(crate) fn batch_committed(records: usize, took: Duration, counts: &Counts) {
    counter!("wakelog_persister_batches_total").increment(1);
    histogram!("wakelog_persister_batch_records").record(records as f64);
    histogram!("wakelog_persister_batch_seconds").record(took.as_secs_f64());
    counter!("wakelog_persister_entries_total").increment(counts.entries);
    for (outcome, records) in &counts.outcomes {
        counter!("wakelog_persister_records_total", "outcome" => *outcome).increment(*records);
    }
    for (reason, records) in &counts.quarantined {
        counter!("wakelog_persister_quarantined_records_total", "reason" => *reason).increment(*records);
    }
}

/// Counts a batch that has to be tried again.
pub(crate) fn batch_retried() {
    counter!("wakelog_persister_batch_retries_total").increment(1);
}

/// Counts a COMMIT that nobody answered.
pub(crate) fn commit_unknown() {
    counter!("wakelog_persister_commits_unknown_total").increment(1);
}

/// Counts a batch that another owner's claim fenced.
pub(crate) fn fenced() {
    counter!("wakelog_persister_fenced_total").increment(1);
}

/// Counts a database that was found to have less of a partition than it had confirmed.
pub(crate) fn store_went_back() {
    counter!("wakelog_persister_lost_commits_total").increment(1);
}

/// Counts leaving the group in order to join it again.
pub(crate) fn rejoined() {
    counter!("wakelog_persister_rejoins_total").increment(1);
}

/// Says how many partitions this process holds, the stopped ones among them.
pub(crate) fn owned_partitions(partitions: usize) {
    gauge!("wakelog_persister_owned_partitions").set(partitions as f64);
}

/// Says how many records of the partition are not folded yet.
pub(crate) fn lag(partition: i32, records: i64) {
    gauge!("wakelog_persister_lag_records", "partition" => partition.to_string()).set(records as f64);
}

/// A stopped partition, for as long as this lives.
#[derive(Debug)]
pub(crate) struct StoppedPartition {
    reason: &'static str,
}

impl StoppedPartition {
    pub(crate) fn new(reason: &StopReason) -> Self {
        let stopped = Self {
            reason: reason.name(),
        };
        stopped.gauge().increment(1.0);
        stopped
    }

    fn gauge(&self) -> metrics::Gauge {
        gauge!("wakelog_persister_stopped_partitions", "reason" => self.reason)
    }
}

impl Drop for StoppedPartition {
    fn drop(&mut self) {
        self.gauge().decrement(1.0);
    }
}
