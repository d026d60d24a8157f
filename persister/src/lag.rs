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
        let stored = match shared.store.progress_of_topic(shared.topic()).await {
            Ok(stored) => stored,
            Err(error) => {
                tracing::debug!(%error, "reading the progress for the lag failed");
                continue;
            }
        };
        let stored: BTreeMap<i32, Progress> = stored.iter().map(|row| (row.partition, *row)).collect();
        for (partition, state) in held {
            let Some((epoch, next_offset)) = position(&state) else {
                continue;
            };
            let lost = match stored.get(&partition) {
                Some(stored) => went_back(epoch, next_offset, stored),
                None => Some(lost_row(epoch)),
            };
            if let Some(detail) = lost {
                // Given back meanwhile, or its worker saw it first: then it is claimed anew in any case.
                let still_held = shared.status.partitions().get(&partition).and_then(position);
                if still_held.is_some_and(|(holding, _)| holding == epoch) {
                    report(partition, &detail);
                    shared.store_went_back.notify_one();
                    continue;
                }
            }
            measure(shared, partition, next_offset).await;
        }
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

/// The epoch and the next offset of a partition that is folded.
fn position(state: &PartitionState) -> Option<(i64, i64)> {
    match state {
        PartitionState::Starting { epoch, next_offset }
        | PartitionState::Running {
            epoch, next_offset, ..
        }
        | PartitionState::Degraded {
            epoch, next_offset, ..
        } => Some((*epoch, *next_offset)),
        PartitionState::Stopped { .. } => None,
    }
}
