//! What each partition is doing, for readiness and the doctor.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::telemetry;

/// Why a partition folds nothing until somebody has looked at it. The other partitions go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    /// Retention ate records that were never folded.
    #[error(
        "the log starts at {low} but {next_offset} is the next offset to fold: the records in between are gone from \
         the log, rebuild from the archive"
    )]
    RetentionHole {
        /// The next offset to fold.
        next_offset: i64,
        /// The log's first offset.
        low: i64,
    },
    /// The record before `next_offset` is not the one that was folded: the topic was recreated.
    #[error(
        "record {offset} is not the one that was folded (checksum {found:?} instead of {expected:08x}): the topic was replaced"
    )]
    LogReplaced {
        /// The record's offset.
        offset: i64,
        /// The checksum of the record that was folded.
        expected: u32,
        /// The checksum of the record that is there; none if there is no such record.
        found: Option<u32>,
    },
    /// The log ends below what was folded.
    #[error(
        "{next_offset} is the next offset to fold but the log ends at {high}: it lost its end or was replaced"
    )]
    BeyondEnd {
        /// The next offset to fold.
        next_offset: i64,
        /// The log's end.
        high: i64,
    },
    /// Most of what comes can't be decoded by this build.
    #[error("{undecodable} of the last {records} records can't be decoded by this build, of many sessions")]
    Undecodable {
        /// Undecodable records in the window.
        undecodable: usize,
        /// Records in the window.
        records: usize,
    },
    /// The log can't be read at this place, again and again.
    #[error("the log can't be read at {next_offset}: {detail}")]
    Unreadable {
        /// The next offset to fold.
        next_offset: i64,
        /// What the log's client said last.
        detail: String,
    },
    /// Something that must not be able to happen.
    #[error("bug: {detail}")]
    Bug {
        /// What it was.
        detail: String,
    },
}

impl StopReason {
    /// A stable snake_case name, for metrics and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RetentionHole { .. } => "retention_hole",
            Self::LogReplaced { .. } => "log_replaced",
            Self::BeyondEnd { .. } => "beyond_end",
            Self::Undecodable { .. } => "undecodable",
            Self::Unreadable { .. } => "unreadable",
            Self::Bug { .. } => "bug",
        }
    }
}

/// What one partition is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionState {
    /// Claimed; the log has not caught up with what was folded yet, or nothing was read yet.
    Starting {
        /// The epoch that this process holds.
        epoch: i64,
        /// The next offset to fold.
        next_offset: i64,
    },
    /// Folding.
    Running {
        /// The epoch that this process holds.
        epoch: i64,
        /// The next offset to fold.
        next_offset: i64,
    },
    /// A batch waits for the store to come back. Nothing is lost.
    Degraded {
        /// The epoch that this process holds.
        epoch: i64,
        /// The next offset to fold.
        next_offset: i64,
        /// What the store said last.
        reason: String,
    },
    /// Folding nothing until somebody has looked at it.
    Stopped {
        /// Why.
        reason: StopReason,
    },
}

impl PartitionState {
    /// The epoch and the next offset, of a partition that is folded.
    pub(crate) fn position(&self) -> Option<(i64, i64)> {
        match self {
            Self::Starting { epoch, next_offset }
            | Self::Running { epoch, next_offset }
            | Self::Degraded {
                epoch, next_offset, ..
            } => Some((*epoch, *next_offset)),
            Self::Stopped { .. } => None,
        }
    }
}

/// Whether this process takes part in its consumer group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Membership {
    /// Not started yet, or shut down.
    #[default]
    Out,
    /// A member, or about to become one.
    In,
    /// Left, and waits before it joins again.
    Rejoining {
        /// Why it left.
        reason: String,
    },
}

#[derive(Debug, Default)]
struct Status {
    membership: Membership,
    partitions: BTreeMap<i32, PartitionState>,
}

/// What a running service is doing. Clones see the same service.
#[derive(Clone, Default)]
pub struct StatusHandle {
    status: Arc<RwLock<Status>>,
}

impl StatusHandle {
    /// The partitions that this process holds.
    pub fn partitions(&self) -> BTreeMap<i32, PartitionState> {
        self.status
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .partitions
            .clone()
    }

    /// Whether this process takes part in its consumer group.
    pub fn membership(&self) -> Membership {
        self.status
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .membership
            .clone()
    }

    /// True if this process is in its group and no partition that it holds is stopped or waits for the store.
    pub fn is_healthy(&self) -> bool {
        let status = self.status.read().unwrap_or_else(PoisonError::into_inner);
        let is_well = |state: &PartitionState| {
            !matches!(
                state,
                PartitionState::Stopped { .. } | PartitionState::Degraded { .. }
            )
        };
        status.membership == Membership::In && status.partitions.values().all(is_well)
    }

    pub(crate) fn set_membership(&self, membership: Membership) {
        self.status
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .membership = membership;
    }

    pub(crate) fn set_partition(&self, partition: i32, state: PartitionState) {
        self.change_partitions(|partitions| {
            partitions.insert(partition, state);
        });
    }

    pub(crate) fn remove_partition(&self, partition: i32) {
        self.change_partitions(|partitions| {
            partitions.remove(&partition);
        });
    }

    pub(crate) fn clear_partitions(&self) {
        self.change_partitions(BTreeMap::clear);
    }

    fn change_partitions(&self, change: impl FnOnce(&mut BTreeMap<i32, PartitionState>)) {
        let mut status = self.status.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut status.partitions);
        telemetry::owned_partitions(status.partitions.len());
    }
}

impl fmt::Debug for StatusHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.read().unwrap_or_else(PoisonError::into_inner);
        fmt::Debug::fmt(&*status, formatter)
    }
}

#[cfg(test)]
mod tests;
