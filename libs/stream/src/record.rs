//! A record as read, and the byte budget it is charged to.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use rdkafka::Message;
use rdkafka::message::BorrowedMessage;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[cfg(test)]
mod tests;

/// What a record costs beyond its key and value.
const RECORD_OVERHEAD: usize = 128;

/// A record as read. As long as it lives it is charged to its consumer's byte budget, so don't hoard them.
pub struct Record {
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The key; empty if there is none.
    pub key: Bytes,
    /// The value; empty if there is none.
    pub value: Bytes,
    /// When the broker or the producer says it was written, in milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
    charge: Option<Charge>,
}

impl Record {
    /// A record that is charged to nobody.
    pub fn new(partition: i32, offset: i64, key: Bytes, value: Bytes, timestamp_ms: Option<i64>) -> Self {
        Self {
            partition,
            offset,
            key,
            value,
            timestamp_ms,
            charge: None,
        }
    }

    /// CRC-32 over the lengths and bytes of key and value: what tells a record from another one at the same offset
    /// of a topic that was made anew.
    pub fn crc(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&(self.key.len() as u64).to_be_bytes());
        hasher.update(&self.key);
        hasher.update(&(self.value.len() as u64).to_be_bytes());
        hasher.update(&self.value);
        hasher.finalize()
    }

    /// Bytes of key and value.
    pub fn len(&self) -> usize {
        self.key.len() + self.value.len()
    }

    /// Whether both key and value are empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn copied_from(message: &BorrowedMessage<'_>) -> Self {
        let key = message.key().unwrap_or_default();
        let value = message.payload().unwrap_or_default();
        let mut bytes = BytesMut::with_capacity(key.len() + value.len());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        let mut value = bytes.freeze();
        let key = value.split_to(key.len());
        Self::new(
            message.partition(),
            message.offset(),
            key,
            value,
            message.timestamp().to_millis(),
        )
    }

    pub(crate) fn charged(mut self, charge: Charge) -> Self {
        self.charge = Some(charge);
        self
    }

    pub(crate) fn cost(&self) -> usize {
        self.len() + RECORD_OVERHEAD
    }
}

// By hand: a payload is never printed.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("partition", &self.partition)
            .field("offset", &self.offset)
            .field("key_bytes", &self.key.len())
            .field("value_bytes", &self.value.len())
            .finish_non_exhaustive()
    }
}

/// The bytes that all partitions of one consumer may hold together.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    free: Arc<Semaphore>,
    total: usize,
}

impl Budget {
    pub(crate) fn new(total: usize) -> Self {
        let total = total.clamp(1, u32::MAX as usize);
        Self {
            free: Arc::new(Semaphore::new(total)),
            total,
        }
    }

    /// One partition's view of it.
    pub(crate) fn share(&self) -> Share {
        Share {
            budget: self.clone(),
            outstanding: Arc::default(),
        }
    }
}

/// One partition's view of the budget. A partition of which nothing is outstanding may always have one record, so
/// that a slow partition can make the others slow but never stop them.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    outstanding: Arc<AtomicUsize>,
}

impl Share {
    /// Charges one record, or says that it has to wait.
    pub(crate) fn try_charge(&self, bytes: usize) -> Option<Charge> {
        let bytes = u32::try_from(bytes.min(self.budget.total)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.budget.free).try_acquire_many_owned(bytes).ok();
        if permit.is_none() && self.outstanding.load(Ordering::Acquire) > 0 {
            return None;
        }
        self.outstanding.fetch_add(1, Ordering::AcqRel);
        Some(Charge {
            _permit: permit,
            outstanding: Arc::clone(&self.outstanding),
        })
    }

    /// Whether it is worth to fetch again after having been full.
    pub(crate) fn has_room(&self) -> bool {
        self.outstanding.load(Ordering::Acquire) == 0
            || self.budget.free.available_permits() >= self.budget.total / 2
    }
}

/// What a living record holds of the budget.
#[derive(Debug)]
pub(crate) struct Charge {
    _permit: Option<OwnedSemaphorePermit>,
    outstanding: Arc<AtomicUsize>,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.outstanding.fetch_sub(1, Ordering::AcqRel);
    }
}
