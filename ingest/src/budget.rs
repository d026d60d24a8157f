//! The memory that parts on their way to the log may take, over all lifetimes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// A semaphore counts in 32 bits; bytes would not fit.
const UNIT_BYTES: u64 = 1024;

/// Bytes in units of the budget, rounded up.
pub(crate) fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

/// Takes room for each part of an entry, all at once or not at all.
pub(crate) fn try_take(
    budget: &Arc<Semaphore>,
    parts: impl Iterator<Item = u64>,
) -> Option<Vec<OwnedSemaphorePermit>> {
    parts
        .map(|bytes| Arc::clone(budget).try_acquire_many_owned(units(bytes)).ok())
        .collect()
}

/// Waits for room for one part.
pub(crate) async fn take(
    budget: &Arc<Semaphore>,
    bytes: u64,
    bound: Duration,
) -> Option<OwnedSemaphorePermit> {
    timeout(bound, Arc::clone(budget).acquire_many_owned(units(bytes)))
        .await
        .ok()?
        .ok()
}
