//! A database that has less than it has confirmed: a failover to a standby that was behind, or a crash of one that does not wait
//! for its disk. The log has what is missing, so the fold goes on from what the database has; but somebody has to know.
//!
//! A worker sees it when its next batch does not fit. A process that was started anew, or got the partition from another one,
//! has the offset that the group has told the brokers.

use std::sync::Arc;

use crate::shared::Shared;
use crate::telemetry;

/// Compares where a claimed partition starts with how far the group has come. It hinders nothing: the brokers are asked while
/// the partition is folded.
pub(crate) async fn look_for_lost_commits(shared: Arc<Shared>, partition: i32, next_offset: i64) {
    match shared.reader.committed(partition).await {
        Ok(Some(committed)) if committed > next_offset => {
            telemetry::store_went_back();
            tracing::error!(
                partition,
                next_offset,
                committed,
                "the database has lost commits that it had confirmed, or is another one: folding again from what it has"
            );
        }
        Ok(_) => {}
        Err(error) => tracing::debug!(partition, %error, "asking for the group's offset failed"),
    }
}
