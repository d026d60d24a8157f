//! Measures how far behind the log each partition is, and whether the store still has what this process has folded: a partition that
//! gets no records has no batch that would show it.

use std::collections::BTreeMap;
use std::convert::Infallible;

use wakelog_store::Progress;

use crate::lost_commits::{lost_row, report, went_back};
use crate::shared::Shared;
use crate::status::PartitionState;
use crate::telemetry;

/// Measures again and again; ends only by being dropped.
pub(crate) async fn measure_lag(shared: &Shared) -> Infallible {
    loop {
        tokio::time::sleep(shared.options.lag_interval).await;
        // This process's view first: what it calls folded is committed by then, so a store that has less has lost it.
        let held = shared.status.partitions();
        let stored = stored_progress(shared).await;
        for (partition, state) in held {
            let own = state.position();
            let stored = stored.as_ref().map(|rows| rows.get(&partition));
            if let (Some((epoch, next_offset)), Some(stored)) = (own, stored) {
                compare(shared, partition, epoch, next_offset, stored);
            }
            // A stopped partition is as far as the store says.
            let stored_offset = stored.flatten().map(|row| row.next_offset);
            if let Some(next_offset) = stored_offset.or(own.map(|(_, next_offset)| next_offset)) {
                measure(shared, partition, next_offset).await;
            }
        }
    }
}

/// `None`: the store is away. The log says how far behind it that leaves the fold.
async fn stored_progress(shared: &Shared) -> Option<BTreeMap<i32, Progress>> {
    match shared.store.progress_of_topic(shared.topic()).await {
        Ok(stored) => Some(stored.iter().map(|row| (row.partition, *row)).collect()),
        Err(error) => {
            tracing::debug!(%error, "reading the progress for the lag failed");
            None
        }
    }
}

/// Has the partition claimed anew if the store lacks what this process has folded of it.
fn compare(shared: &Shared, partition: i32, epoch: i64, next_offset: i64, stored: Option<&Progress>) {
    let lost = match stored {
        Some(stored) => went_back(epoch, next_offset, stored),
        None => Some(lost_row(epoch)),
    };
    let Some(detail) = lost else {
        return;
    };
    // Given back meanwhile, or its worker saw it first: then it is claimed anew in any case.
    let still_held = shared
        .status
        .partitions()
        .get(&partition)
        .and_then(PartitionState::position);
    if still_held.is_some_and(|(holding, _)| holding == epoch) {
        report(partition, &detail);
        shared.store_went_back.notify_one();
    }
}

async fn measure(shared: &Shared, partition: i32, next_offset: i64) {
    match shared.reader.watermarks(partition).await {
        // Given back meanwhile: another one measures it.
        Ok(_) if !shared.status.partitions().contains_key(&partition) => {}
        Ok(watermarks) => telemetry::lag(partition, (watermarks.high - next_offset).max(0)),
        Err(error) => tracing::debug!(partition, %error, "measuring the lag failed"),
    }
}
