//! When a partition that can't be read stops.
//!
//! An error of one partition makes the member leave and join again, which decides anew where the partition starts. If
//! that does not help, again and again, the partition stops and the others go on.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::status::StopReason;

/// So many errors at the same offset stop a partition.
const TRIES: u32 = 3;

/// Errors of each partition at one offset.
#[derive(Debug, Default)]
pub(crate) struct UnreadablePartitions {
    partitions: Mutex<HashMap<i32, Failing>>,
}

#[derive(Debug)]
struct Failing {
    offset: i64,
    errors: u32,
    detail: String,
}

impl UnreadablePartitions {
    /// Takes an error. One at another offset than the last starts the count again.
    pub(crate) fn failed(&self, partition: i32, offset: i64, detail: String) {
        let mut partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let errors = match partitions.get(&partition) {
            Some(failing) if failing.offset == offset => failing.errors.saturating_add(1),
            _ => 1,
        };
        partitions.insert(
            partition,
            Failing {
                offset,
                errors,
                detail,
            },
        );
    }

    /// Why the partition must stop, if it could not be read at this offset too often.
    pub(crate) fn stopped_at(&self, partition: i32, next_offset: i64) -> Option<StopReason> {
        let partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let failing = partitions.get(&partition)?;
        if failing.offset != next_offset || failing.errors < TRIES {
            return None;
        }
        Some(StopReason::Unreadable {
            next_offset,
            detail: failing.detail.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
