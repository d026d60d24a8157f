//! A database that has less than it has confirmed: a failover to a standby that was behind, or a crash of one that does not wait
//! for its disk. The log has what is missing, so the fold goes on from what the database has; but somebody has to know.
//!
//! A worker sees it when its next batch does not fit, and the measuring of the lag where no batch comes. A process that was
//! started anew, or got the partition from another one, has the offset that the group has told the brokers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wakelog_store::Progress;

use crate::shared::Shared;
use crate::status::PartitionState;
use crate::telemetry;
use crate::worker::Courtesy;

/// How long after brokers that did not answer they are asked again.
const PAUSE_BETWEEN_LOOKS: Duration = Duration::from_secs(5);

/// What is said of it, whoever notices.
pub(crate) fn report(partition: i32, detail: &str) {
    telemetry::store_went_back();
    tracing::error!(
        partition,
        detail,
        "the database has lost commits that it had confirmed, or is another one: folding again from what it has"
    );
}

/// In words, that the store lacks a claim or a COMMIT of this process, if it does. Pure.
pub(crate) fn went_back(epoch: i64, next_offset: i64, stored: &Progress) -> Option<String> {
    if stored.epoch < epoch {
        return Some(lost_claim(epoch, stored.epoch));
    }
    (stored.epoch == epoch && stored.next_offset < next_offset)
        .then(|| lost_offset(next_offset, stored.next_offset))
}

pub(crate) fn lost_row(held: i64) -> String {
    format!("epoch {held} was claimed, the store has no progress")
}

pub(crate) fn lost_claim(held: i64, current: i64) -> String {
    format!("epoch {held} was claimed, the store has {current}")
}

pub(crate) fn lost_offset(held: i64, current: i64) -> String {
    format!("{held} was committed as the next offset, the store has {current}")
}

/// Compares where a claimed partition starts with how far the group has come. It hinders nothing: the brokers are asked while
/// the partition is folded. Until they have answered, this process tells them nothing else.
pub(crate) struct Look {
    pub(crate) shared: Arc<Shared>,
    pub(crate) partition: i32,
    /// Where the partition started.
    pub(crate) next_offset: i64,
    pub(crate) courtesy: Courtesy,
    /// Cancelled when the partition is given back: others may have told the brokers more by then.
    pub(crate) stop: CancellationToken,
}

impl Look {
    /// Asks until there is an answer or the partition is given back.
    pub(crate) async fn for_lost_commits(self) {
        let (partition, next_offset) = (self.partition, self.next_offset);
        let committed = loop {
            let asked = tokio::select! {
                () = self.stop.cancelled() => return,
                asked = self.shared.reader.committed(partition) => asked,
            };
            match asked {
                Ok(committed) => break committed,
                Err(error) => tracing::debug!(partition, %error, "asking for the group's offset failed"),
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(PAUSE_BETWEEN_LOOKS) => {}
            }
        };
        if self.stop.is_cancelled() {
            return;
        }
        if let Some(committed) = committed.filter(|committed| *committed > next_offset) {
            report(partition, &lost_offset(committed, next_offset));
        }
        self.tell();
    }

    /// Tells the brokers how far the worker has come meanwhile, and lets it do so itself from now on.
    fn tell(&self) {
        self.courtesy.may_commit.store(true, Ordering::Release);
        let held = self.shared.status.partitions();
        let Some((_, folded)) = held.get(&self.partition).and_then(PartitionState::position) else {
            return;
        };
        if folded > self.next_offset && self.courtesy.commits.try_send((self.partition, folded)).is_err() {
            tracing::trace!(partition = self.partition, "skipped a courtesy commit");
        }
    }
}

#[cfg(test)]
mod tests;
