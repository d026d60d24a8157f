//! What a failed batch means for its partition. Pure.

use wakelog_store::Error as StoreError;

use crate::batch::BatchError;
use crate::lost_commits::{lost_claim, lost_offset};
use crate::status::StopReason;

/// What to do about a batch that has no known COMMIT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Try the same batch again, after a pause: nothing of it is written.
    Redo,
    /// Read the progress row before anything else: it may be written.
    ReadProgress,
    /// Another process has the partition: leave the group.
    Fenced,
    /// The store has less than this process has committed: leave the group, and fold again from what the store has.
    WentBack {
        /// What it had, and what it has.
        detail: String,
    },
    /// Fold nothing more of this partition.
    Stop(StopReason),
    /// The service dies. Tests only.
    Die,
}

/// Decides that. `commit_in_doubt` says that an earlier COMMIT of this very batch was not answered: then a moved offset
/// may be its doing, however late.
pub(crate) fn verdict(error: &BatchError, commit_in_doubt: bool) -> Verdict {
    match error {
        BatchError::CommitUnknown { .. } => Verdict::ReadProgress,
        BatchError::Store(StoreError::Fenced { held, current, .. }) if current < held => Verdict::WentBack {
            detail: lost_claim(*held, *current),
        },
        BatchError::Store(StoreError::Fenced { .. }) => Verdict::Fenced,
        BatchError::Store(StoreError::OffsetMismatch { .. }) if commit_in_doubt => Verdict::ReadProgress,
        BatchError::Store(StoreError::OffsetMismatch { held, current, .. }) if current < held => {
            Verdict::WentBack {
                detail: lost_offset(*held, *current),
            }
        }
        BatchError::Store(
            StoreError::OffsetMismatch { .. } | StoreError::OutOfRange { .. } | StoreError::Bug(_),
        )
        | BatchError::State { .. }
        | BatchError::Effects(_) => Verdict::Stop(StopReason::Bug {
            detail: error.to_string(),
        }),
        BatchError::Store(_) => Verdict::Redo,
        BatchError::Failpoint => Verdict::Die,
    }
}

#[cfg(test)]
mod tests;
