//! When a partition stops because this build can't read what is in it. Pure.
//!
//! One undecodable record is quarantined and the partition moves on. Many of them, of many sessions, mean a bad
//! deploy: going on would drain the log into quarantine. No other kind of quarantined record counts, so that no
//! writer can stop a partition.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// When undecodable records stop a partition. All three conditions must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndecodableLimit {
    /// How many of the partition's last records are looked at.
    pub window: usize,
    /// At least so many of them were undecodable.
    pub records: usize,
    /// At least so many per cent of them were undecodable.
    pub percent: usize,
    /// The undecodable ones had at least so many different keys.
    pub keys: usize,
}

impl Default for UndecodableLimit {
    fn default() -> Self {
        Self {
            window: 1_000,
            records: 100,
            percent: 50,
            keys: 10,
        }
    }
}

/// The last records of a partition.
#[derive(Debug, Clone)]
pub(crate) struct UndecodableWindow {
    limit: UndecodableLimit,
    /// The key's hash for an undecodable record, `None` for any other.
    seen: VecDeque<Option<u64>>,
    undecodable: usize,
    keys: HashMap<u64, usize>,
}

impl UndecodableWindow {
    pub(crate) fn new(limit: UndecodableLimit) -> Self {
        Self {
            limit,
            seen: VecDeque::new(),
            undecodable: 0,
            keys: HashMap::new(),
        }
    }

    /// Takes the partition's next record: its key if it was undecodable.
    pub(crate) fn push(&mut self, undecodable_key: Option<&[u8]>) {
        let entry = undecodable_key.map(hash_of);
        if let Some(key) = entry {
            self.undecodable += 1;
            *self.keys.entry(key).or_default() += 1;
        }
        self.seen.push_back(entry);
        if self.seen.len() > self.limit.window {
            self.forget_oldest();
        }
    }

    /// Whether the partition has to stop.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.undecodable >= self.limit.records
            && self.undecodable * 100 >= self.seen.len() * self.limit.percent
            && self.keys.len() >= self.limit.keys
    }

    /// Undecodable records in the window.
    pub(crate) fn undecodable(&self) -> usize {
        self.undecodable
    }

    /// Records in the window.
    pub(crate) fn records(&self) -> usize {
        self.seen.len()
    }

    fn forget_oldest(&mut self) {
        let Some(Some(key)) = self.seen.pop_front() else {
            return;
        };
        self.undecodable -= 1;
        if let Some(count) = self.keys.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.keys.remove(&key);
            }
        }
    }
}

fn hash_of(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
