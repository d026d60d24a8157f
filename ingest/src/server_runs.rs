//! Whether the store that answers may have lost binds that it had confirmed. Pure.
//!
//! A store that recovered from a crash, or another one that took over, may lack what was folded, and what was announced of binds
//! that are not folded yet. It is trusted again with a partition once it has everything that the partition held when every bind
//! that was announced before had come into the log.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// Which run of the database's server answers, and with which partitions it is trusted.
#[derive(Debug, Default)]
pub(crate) struct ServerRuns {
    current: Option<Current>,
    /// What must be folded of a partition before the current one is trusted with it. None of the first one that this process met:
    /// what was lost before it came is not known here.
    targets: HashMap<i32, i64>,
}

#[derive(Debug)]
struct Current {
    server_run: i64,
    /// When it took the place of another one, as this process noticed; `None`: it is the first.
    noticed_at: Option<Instant>,
    /// How many there were before. A run may come back, when the server before takes over again.
    number: u64,
}

impl ServerRuns {
    /// Takes the run of a read that began at `read_at` and ended `now`. A read of before another one was noticed comes
    /// late, and changes nothing.
    pub(crate) fn met(&mut self, server_run: i64, read_at: Instant, now: Instant) {
        let Some(current) = &self.current else {
            self.current = Some(Current {
                server_run,
                noticed_at: None,
                number: 0,
            });
            return;
        };
        let is_late = current.noticed_at.is_some_and(|noticed_at| read_at <= noticed_at);
        if current.server_run == server_run || is_late {
            return;
        }
        tracing::warn!(
            "the database was started again or recovered from a crash: commits may be lost, `LOG` acks wait until the log is folded"
        );
        self.current = Some(Current {
            server_run,
            noticed_at: Some(now),
            number: current.number + 1,
        });
        self.targets.clear();
    }

    /// When another run was noticed last: what was read before says nothing of it.
    pub(crate) fn noticed_at(&self) -> Option<Instant> {
        self.current.as_ref()?.noticed_at
    }

    /// Whether binds may be missing in what was read of a partition that was folded up to `next_offset` at that moment.
    pub(crate) fn may_lack_binds(&self, partition: i32, server_run: i64, next_offset: i64) -> bool {
        match &self.current {
            None => false,
            Some(current) if current.server_run != server_run => true,
            Some(current) => current.noticed_at.is_some() && !self.is_trusted_at(partition, next_offset),
        }
    }

    /// The partitions of these whose end is wanted now, for the run whose number comes with them: a bind that was announced before
    /// it was noticed can't come into the log any more.
    pub(crate) fn ends_wanted(
        &self,
        partitions: impl Iterator<Item = i32>,
        now: Instant,
        bind_message_timeout: Duration,
    ) -> Vec<(i32, u64)> {
        let Some(Current {
            number,
            noticed_at: Some(noticed_at),
            ..
        }) = self.current
        else {
            return Vec::new();
        };
        if now.saturating_duration_since(noticed_at) <= bind_message_timeout {
            return Vec::new();
        }
        let is_wanted = |partition: &i32| !self.targets.contains_key(partition);
        partitions
            .filter(is_wanted)
            .map(|partition| (partition, number))
            .collect()
    }

    /// Takes the partition's end that was wanted for the run with this number.
    pub(crate) fn partition_end(&mut self, partition: i32, number: u64, end: i64) {
        let current = self.current.as_ref();
        if current.is_some_and(|current| current.number == number) {
            self.targets.entry(partition).or_insert(end);
        }
    }

    /// How many of these partitions, each with its next offset, the current run is not trusted with.
    pub(crate) fn doubted(&self, progress: impl Iterator<Item = (i32, i64)>) -> usize {
        let is_first = self
            .current
            .as_ref()
            .is_none_or(|current| current.noticed_at.is_none());
        if is_first {
            return 0;
        }
        progress
            .filter(|(partition, next_offset)| !self.is_trusted_at(*partition, *next_offset))
            .count()
    }

    fn is_trusted_at(&self, partition: i32, next_offset: i64) -> bool {
        self.targets
            .get(&partition)
            .is_some_and(|target| next_offset >= *target)
    }
}
