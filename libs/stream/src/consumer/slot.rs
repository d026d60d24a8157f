//! One assigned partition: its queue, its byte budget, pause and resume.

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::sync::CancellationToken;

use super::records::PartitionRecords;
use crate::error::Error;
use crate::record::{Record, Share};

#[cfg(test)]
mod tests;

const PAUSED: &str = "wakelog_stream_paused_partitions";

/// One assigned partition, as the poll thread sees it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) partition: i32,
    /// The offset that has to come next.
    expected: i64,
    /// `None`: stopped, with an error or because nobody reads it.
    queue: Option<mpsc::Sender<Record>>,
    revoked: CancellationToken,
    share: Share,
    /// The one record that had no room.
    stash: Option<Record>,
    paused: bool,
}

/// What became of a record that was offered.
#[derive(Debug)]
pub(super) enum Offer {
    /// Queued, or known already.
    Taken,
    /// It waits in the stash; nothing more may be offered until it has found room, or else the partition has to be paused.
    Full,
    /// The partition takes nothing any more; it has to be paused for good.
    Stopped,
    /// The record is not the one that has to come next; the partition has stopped.
    Gap(Error),
    /// A record came although the partition is paused.
    NotPaused,
}

impl Slot {
    pub(super) fn new(
        partition: i32,
        start: i64,
        queue_records: usize,
        share: Share,
    ) -> (Self, PartitionRecords) {
        let (queue, receiver) = mpsc::channel(queue_records.max(1));
        let revoked = CancellationToken::new();
        let records = PartitionRecords::new(receiver, revoked.clone());
        let slot = Self {
            partition,
            expected: start,
            queue: Some(queue),
            revoked,
            share,
            stash: None,
            paused: false,
        };
        (slot, records)
    }

    pub(super) fn expected(&self) -> i64 {
        self.expected
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.queue.is_none()
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    pub(super) fn offer(&mut self, record: Record) -> Offer {
        if self.is_stopped() {
            return Offer::Stopped;
        }
        if record.offset < self.expected {
            metrics::counter!("wakelog_stream_repeated_records_total").increment(1);
            return Offer::Taken;
        }
        if record.offset > self.expected {
            let error = Error::OffsetGap {
                partition: self.partition,
                expected: self.expected,
                found: record.offset,
            };
            self.stop();
            return Offer::Gap(error);
        }
        if self.stash.is_some() {
            return Offer::NotPaused;
        }
        self.expected += 1;
        self.enqueue(record);
        if self.is_stopped() {
            return Offer::Stopped;
        }
        if self.stash.is_some() {
            return Offer::Full;
        }
        Offer::Taken
    }

    /// Tries to get the stash into the queue; whether it is empty now.
    pub(super) fn unstash(&mut self) -> bool {
        if let Some(record) = self.stash.take() {
            self.enqueue(record);
        }
        self.stash.is_none()
    }

    /// Takes note that the partition is paused.
    pub(super) fn pause(&mut self) {
        self.set_paused(true);
    }

    /// Tries to get the stash into the queue; whether the partition should be resumed now. Not before half of the
    /// room is free: a pause throws away what was fetched ahead, so it must be worth it.
    pub(super) fn relieve(&mut self) -> bool {
        let is_empty = self.unstash();
        let Some(queue) = &self.queue else {
            return false;
        };
        let has_room = queue.capacity() * 2 >= queue.max_capacity() && self.share.has_room();
        if !self.paused || !is_empty || !has_room {
            return false;
        }
        self.set_paused(false);
        true
    }

    /// No record will come any more; what is queued can still be read.
    pub(super) fn stop(&mut self) {
        self.queue = None;
        self.stash = None;
        self.set_paused(false);
    }

    fn enqueue(&mut self, record: Record) {
        let Some(queue) = &self.queue else {
            return;
        };
        let nobody_reads = match queue.try_reserve() {
            Ok(room) => {
                match self.share.try_charge(record.cost()) {
                    Some(charge) => room.send(record.charged(charge)),
                    None => self.stash = Some(record),
                }
                false
            }
            Err(TrySendError::Full(())) => {
                self.stash = Some(record);
                false
            }
            Err(TrySendError::Closed(())) => true,
        };
        if nobody_reads {
            self.stop();
        }
    }

    fn set_paused(&mut self, paused: bool) {
        if self.paused == paused {
            return;
        }
        self.paused = paused;
        if paused {
            metrics::gauge!(PAUSED).increment(1.0);
            metrics::counter!("wakelog_stream_pauses_total").increment(1);
        } else {
            metrics::gauge!(PAUSED).decrement(1.0);
        }
    }
}

/// Revoked: readers see the end at once.
impl Drop for Slot {
    fn drop(&mut self) {
        self.revoked.cancel();
        self.set_paused(false);
    }
}
