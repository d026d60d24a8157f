//! The metrics of ingest, by name. Nothing here ever holds a payload, a token or a key.

use wakelog_contract::{reason_name, reason_of};

/// Makes the counters that are there to wake somebody: their first event is a rise only if they were 0 before.
pub(crate) fn begin() {
    ::metrics::counter!("wakelog_ingest_deliveries_below_fold_total").increment(0);
    ::metrics::counter!("wakelog_ingest_log_acks_in_fence_window_total").increment(0);
}

pub(crate) fn entry_published(kind: &'static str, plain_bytes: u64) {
    ::metrics::counter!("wakelog_ingest_entries_total", "call" => kind).increment(1);
    ::metrics::counter!("wakelog_ingest_bytes_total", "call" => kind).increment(plain_bytes);
}

pub(crate) fn acks(log: u64, store: u64) {
    if log > 0 {
        ::metrics::counter!("wakelog_ingest_acks_total", "level" => "log").increment(log);
    }
    if store > 0 {
        ::metrics::counter!("wakelog_ingest_acks_total", "level" => "store").increment(store);
    }
}

/// Counts a status that is about to be answered.
pub(crate) fn refusal(status: &tonic::Status) {
    let reason = reason_of(status).map_or("other", reason_name);
    ::metrics::counter!("wakelog_ingest_refusals_total", "reason" => reason).increment(1);
}

pub(crate) fn repeat() {
    ::metrics::counter!("wakelog_ingest_repeats_total").increment(1);
}

pub(crate) fn voided_publishes(count: u64) {
    ::metrics::counter!("wakelog_ingest_voided_publishes_total").increment(count);
}

/// Deliveries below what was folded before they were published: the topic was replaced.
pub(crate) fn log_replaced() {
    ::metrics::counter!("wakelog_ingest_deliveries_below_fold_total").increment(1);
}

/// Delivered entries that the fold dropped: a gap, since an entry below was voided after it was sent.
pub(crate) fn dropped_by_fold() {
    ::metrics::counter!("wakelog_ingest_entries_dropped_by_fold_total").increment(1);
}

/// Entries that had a `LOG` ack when a fence came to light that they did not survive.
pub(crate) fn log_acks_in_fence_window(count: u64) {
    ::metrics::counter!("wakelog_ingest_log_acks_in_fence_window_total").increment(count);
}

pub(crate) fn unacked_entries(change: i64) {
    ::metrics::gauge!("wakelog_ingest_unacked_entries").increment(change as f64);
}

pub(crate) fn in_flight_bytes(change: f64) {
    ::metrics::gauge!("wakelog_ingest_in_flight_bytes").increment(change);
}

pub(crate) fn lanes(count: usize) {
    ::metrics::gauge!("wakelog_ingest_lanes_count").set(count as f64);
}

pub(crate) fn open_calls(change: f64) {
    ::metrics::gauge!("wakelog_ingest_open_calls").increment(change);
}

pub(crate) fn watcher_failure() {
    ::metrics::counter!("wakelog_ingest_watcher_failures_total").increment(1);
}

pub(crate) fn fence_age(seconds: f64) {
    ::metrics::gauge!("wakelog_ingest_fence_age_seconds").set(seconds);
}

/// Partitions that get no `LOG` acks, since the database may have lost binds of theirs.
pub(crate) fn doubted_partitions(count: usize) {
    ::metrics::gauge!("wakelog_ingest_partitions_without_log_acks").set(count as f64);
}

pub(crate) fn barrier(passed: bool, seconds: f64) {
    let outcome = if passed { "passed" } else { "timed_out" };
    ::metrics::histogram!("wakelog_ingest_barrier_seconds", "outcome" => outcome).record(seconds);
}

pub(crate) fn ack_seconds(seconds: f64) {
    ::metrics::histogram!("wakelog_ingest_unary_ack_seconds").record(seconds);
}
