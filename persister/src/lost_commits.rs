//! A database that has less than it has confirmed: a failover to a standby that was behind, or a crash of one that does not wait
//! for its disk. The log has what is missing, so the fold goes on from what the database has; but somebody has to know.
//!
//! A worker sees it when its next batch does not fit, and the measuring of the lag where no batch comes. A process that was
//! started anew, or got the partition from another one, has the offset that the group has told the brokers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wakelog_store::Progress;

use crate::shared::Shared;
use crate::telemetry;

/// What is said of it, whoever notices.
pub(crate) fn report(partition: i32, detail: &str) {
    telemetry::store_went_back();
    tracing::error!(
        partition,
        detail,
        "the database has lost commits that it had confirmed, or is another one: folding again from what it has"
    );
}

/// In words, that the store lacks a claim or a COMMIT of this process, if it does. Pure.
pub(crate) fn went_back(epoch: i64, next_offset: i64, stored: &Progress) -> Option<String> {
    if stored.epoch < epoch {
        return Some(lost_claim(epoch, stored.epoch));
    }
    (stored.epoch == epoch && stored.next_offset < next_offset)
        .then(|| lost_offset(next_offset, stored.next_offset))
}

pub(crate) fn lost_row(held: i64) -> String {
    format!("epoch {held} was claimed, the store has no progress")
}

pub(crate) fn lost_claim(held: i64, current: i64) -> String {
    format!("epoch {held} was claimed, the store has {current}")
}

pub(crate) fn lost_offset(held: i64, current: i64) -> String {
    format!("{held} was committed as the next offset, the store has {current}")
}

/// Compares where a claimed partition starts with how far the group has come. It hinders nothing: the brokers are asked while
/// the partition is folded. Until they have answered, `is_looked_at` keeps this process from telling them something else.
pub(crate) async fn look_for_lost_commits(
    shared: Arc<Shared>,
    partition: i32,
    next_offset: i64,
    is_looked_at: Arc<AtomicBool>,
) {
    match shared.reader.committed(partition).await {
        Ok(Some(committed)) if committed > next_offset => {
            report(partition, &lost_offset(committed, next_offset));
        }
        Ok(_) => {}
        Err(error) => tracing::debug!(partition, %error, "asking for the group's offset failed"),
    }
    is_looked_at.store(true, Ordering::Release);
}

#[cfg(test)]
mod tests;
