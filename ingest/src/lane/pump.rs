//! Takes the delivery reports of one lifetime, in publish order, whoever published and whether or not they still wait.

use std::sync::Weak;

use tokio::sync::mpsc;

use super::{InFlight, Lane};

/// Runs until the lane is gone. Each wait is bounded by the producer's message time-out.
pub(super) async fn pump(lane: Weak<Lane>, mut reports: mpsc::UnboundedReceiver<InFlight>) {
    while let Some(in_flight) = reports.recv().await {
        let InFlight {
            part,
            delivery,
            _budget,
        } = in_flight;
        let offset = delivery.await;
        // A lane with something in flight is never evicted.
        let Some(lane) = lane.upgrade() else {
            return;
        };
        let offset = offset
            .inspect_err(|error| {
                tracing::warn!(lifetime = %lane.identity.lifetime, seq = part.seq, %error, "publish failed");
            })
            .ok();
        lane.delivered(part, offset.filter(|_| !report_is_lost()));
    }
}

/// A delivery report that a dying relay did not get to: the log has the record, nobody is told. Tests only.
fn report_is_lost() -> bool {
    fail::fail_point!("ingest::before_ack", |_| true);
    false
}
