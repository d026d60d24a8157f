//! The reading end of a partition's queue.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::record::Record;

#[cfg(test)]
mod tests;

/// The records of an assigned partition, in order. Dropping it stops the partition, not the membership.
#[derive(Debug)]
pub struct PartitionRecords {
    queue: mpsc::Receiver<Record>,
    revoked: CancellationToken,
    /// Was taken from the queue and did not fit into the last batch.
    next: Option<Record>,
}

impl PartitionRecords {
    pub(super) fn new(queue: mpsc::Receiver<Record>, revoked: CancellationToken) -> Self {
        Self {
            queue,
            revoked,
            next: None,
        }
    }

    /// Waits for at least one record and takes what else is there, up to `max_records` and `max_bytes`; the first
    /// record is taken whatever its size. `None` as soon as the partition is revoked, whatever is still queued; or,
    /// for a partition that has stopped with an error, after its last record. Nothing is lost if this is cancelled.
    pub async fn next_batch(&mut self, max_records: usize, max_bytes: usize) -> Option<Vec<Record>> {
        let first = match self.next.take() {
            _ if self.revoked.is_cancelled() => return None,
            Some(record) => record,
            None => tokio::select! {
                biased;
                () = self.revoked.cancelled() => return None,
                record = self.queue.recv() => record?,
            },
        };
        let mut bytes = first.len();
        let mut batch = vec![first];
        while batch.len() < max_records {
            let Ok(record) = self.queue.try_recv() else {
                break;
            };
            bytes += record.len();
            if bytes > max_bytes {
                self.next = Some(record);
                break;
            }
            batch.push(record);
        }
        Some(batch)
    }
}
