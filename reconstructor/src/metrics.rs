//! The service's metrics, `wakelog_reconstructor_*`.

use std::time::Duration;

use wakelog_contract::reason_name;
use wakelog_proto::v1::RefusalReason;

/// How a bind came out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bind {
    /// It is current.
    Won,
    /// Another one has its generation.
    Lost,
    /// The request had bound before.
    Reused,
}

impl Bind {
    fn name(self) -> &'static str {
        match self {
            Self::Won => "won",
            Self::Lost => "lost",
            Self::Reused => "reused",
        }
    }
}

pub(crate) fn bind(outcome: Bind) {
    metrics::counter!("wakelog_reconstructor_binds_total", "outcome" => outcome.name()).increment(1);
}

pub(crate) fn barrier(waited: Duration) {
    metrics::histogram!("wakelog_reconstructor_barrier_seconds").record(waited.as_secs_f64());
}

pub(crate) fn applied(waited: Duration) {
    metrics::histogram!("wakelog_reconstructor_apply_wait_seconds").record(waited.as_secs_f64());
}

/// A body was closed (`complete`) or broke off.
pub(crate) fn body(kind: &'static str, complete: bool) {
    let outcome = if complete { "complete" } else { "broken_off" };
    metrics::counter!("wakelog_reconstructor_bodies_total", "kind" => kind, "outcome" => outcome)
        .increment(1);
}

pub(crate) fn body_bytes(sent: u64) {
    metrics::counter!("wakelog_reconstructor_body_bytes_total").increment(sent);
}

/// Plain bytes that came from the archive.
pub(crate) fn archived_bytes(read: u64) {
    metrics::counter!("wakelog_reconstructor_archived_bytes_total").increment(read);
}

pub(crate) fn refused(reason: RefusalReason) {
    metrics::counter!("wakelog_reconstructor_refusals_total", "reason" => reason_name(reason)).increment(1);
}

pub(crate) fn in_flight(what: &'static str, change: f64) {
    metrics::gauge!("wakelog_reconstructor_in_flight", "what" => what).increment(change);
}
