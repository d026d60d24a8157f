//! What became of a COMMIT that nobody answered. Pure.

use wakelog_store::Progress;

use crate::lost_commits::{lost_row, went_back};

/// The batch whose COMMIT was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentCommit {
    /// The epoch that this process holds.
    pub(crate) epoch: i64,
    /// `next_offset` before the batch.
    pub(crate) from: i64,
    /// `next_offset` after it.
    pub(crate) to: i64,
}

/// What the progress row proves about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommitOutcome {
    /// It was applied.
    Ours,
    /// It was not, so far. If it still is on its way, the redo's row lock waits for it and then finds a moved offset.
    NotApplied,
    /// Somebody else has the partition. What became of the batch is theirs to read.
    Fenced {
        /// The epoch that holds the partition now.
        current: i64,
    },
    /// The store has less than was committed before this batch.
    WentBack {
        /// What it had, and what it has.
        detail: String,
    },
    /// The row says what no interleaving of commits and claims can make it say.
    Impossible {
        /// What it says.
        detail: String,
    },
}

/// Decides what the progress row, read after the unanswered COMMIT, proves.
pub(crate) fn commit_outcome(sent: SentCommit, progress: Option<&Progress>) -> CommitOutcome {
    let Some(progress) = progress else {
        let detail = lost_row(sent.epoch);
        return CommitOutcome::WentBack { detail };
    };
    if let Some(detail) = went_back(sent.epoch, sent.from, progress) {
        return CommitOutcome::WentBack { detail };
    }
    if progress.epoch > sent.epoch {
        return CommitOutcome::Fenced {
            current: progress.epoch,
        };
    }
    if progress.next_offset == sent.to {
        return CommitOutcome::Ours;
    }
    if progress.next_offset == sent.from {
        return CommitOutcome::NotApplied;
    }
    let detail = format!(
        "the offset is {} in our own epoch, neither {} nor {}",
        progress.next_offset, sent.from, sent.to
    );
    CommitOutcome::Impossible { detail }
}

#[cfg(test)]
mod tests;
