//! What is counted.

use std::time::Duration;

use metrics::{counter, gauge, histogram};
use wakelog_store::Refusal;

use crate::job::Job;

/// A segment was recorded.
pub(crate) fn archived(kind: &'static str, object_bytes: u64) {
    counter!("wakelog_archiver_segments_total", "kind" => kind).increment(1);
    counter!("wakelog_archiver_segment_bytes_total", "kind" => kind).increment(object_bytes);
}

/// An object was put and not recorded.
pub(crate) fn refused(refusal: &Refusal) {
    let reason = match refusal {
        Refusal::Erased => "erased",
        Refusal::NotStaged => "not_staged",
        Refusal::AlreadyRecorded => "already_recorded",
        Refusal::RowsMoved { .. } => "rows_moved",
    };
    counter!("wakelog_archiver_refusals_total", "reason" => reason).increment(1);
}

/// A job has ended.
pub(crate) fn job(job: Job, outcome: &'static str, took: Duration) {
    counter!("wakelog_archiver_jobs_total", "work" => job.name(), "outcome" => outcome).increment(1);
    histogram!("wakelog_archiver_job_seconds", "work" => job.name()).record(took.as_secs_f64());
}

/// Jobs that wait.
pub(crate) fn waiting(jobs: usize) {
    gauge!("wakelog_archiver_waiting_jobs").set(jobs as f64);
}

/// A session was archived as a whole.
pub(crate) fn snapshot(cause: &'static str) {
    counter!("wakelog_archiver_snapshots_total", "cause" => cause).increment(1);
}

/// The objects of an erased session were deleted.
pub(crate) fn swept(objects: u64) {
    counter!("wakelog_archiver_sweeps_total").increment(1);
    counter!("wakelog_archiver_swept_objects_total").increment(objects);
}

/// Partitions that this archiver looks after.
pub(crate) fn owned_partitions(partitions: usize) {
    gauge!("wakelog_archiver_owned_partitions").set(partitions as f64);
}

/// A partition's coverage.
pub(crate) fn covered(partition: i32, offset: u64) {
    gauge!("wakelog_archiver_covered_offset", "partition" => partition.to_string()).set(offset as f64);
}
