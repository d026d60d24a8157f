//! Measures how far behind the log each partition is.

use std::convert::Infallible;

use crate::shared::Shared;
use crate::status::PartitionState;
use crate::telemetry;

/// Measures again and again; ends only by being dropped.
pub(crate) async fn measure_lag(shared: &Shared) -> Infallible {
    loop {
        tokio::time::sleep(shared.options.lag_interval).await;
        for (partition, state) in shared.status.partitions() {
            let next_offset = match state {
                PartitionState::Starting { next_offset, .. }
                | PartitionState::Running { next_offset, .. }
                | PartitionState::Degraded { next_offset, .. } => next_offset,
                PartitionState::Stopped { .. } => continue,
            };
            match shared.reader.watermarks(partition).await {
                // Given back meanwhile: another one measures it.
                Ok(_) if !shared.status.partitions().contains_key(&partition) => {}
                Ok(watermarks) => telemetry::lag(partition, (watermarks.high - next_offset).max(0)),
                Err(error) => tracing::debug!(partition, %error, "measuring the lag failed"),
            }
        }
    }
}
