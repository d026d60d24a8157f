//! Looking at all sessions in turn, whatever woke the archiver: what was woken before it ran, or while its group had no
//! member, is found here.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use wakelog_model::SessionId;
use wakelog_store::{DueBy, SnapshotCause};

use crate::Error;
use crate::due::due;
use crate::job::Job;
use crate::shared::Shared;

/// Sessions that one sweep looks at: the next one goes on behind them, so that many sessions do not weigh on the database
/// all at once.
const SESSIONS: u32 = 1_000;

/// Finding out how far a partition is covered looks at each of its sessions, so it is left alone for so many times as long as
/// that took: however many there are, it is a small part of what the database does. What the objects of it took, with a store that is
/// slow, is rested from too, twice as long.
const REST_OF_COVERAGE: u32 = 100;

/// Where the next sweep goes on.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    tails: Option<SessionId>,
    ended: Option<SessionId>,
    aged: Option<SessionId>,
    /// When each partition's coverage is looked at next.
    coverage: HashMap<i32, Instant>,
}

impl Shared {
    /// Finds what is due among the next sessions.
    pub(crate) async fn sweep(&self, cursors: &mut Cursors, jobs: &mpsc::Sender<Job>) -> Result<(), Error> {
        let partitions = self.partitions.list();
        if partitions.is_empty() {
            return Ok(());
        }
        cursors.tails = self.sweep_tails(&partitions, cursors.tails, jobs).await?;
        cursors.ended = self
            .sweep_states(
                &partitions,
                (DueBy::SessionEnd, SnapshotCause::SessionEnd),
                cursors.ended,
                jobs,
            )
            .await?;
        if let Some(retention) = self.options.retention {
            let by = (DueBy::Age(half(retention)), SnapshotCause::Retention);
            cursors.aged = self.sweep_states(&partitions, by, cursors.aged, jobs).await?;
        }
        let erased = self
            .store
            .due_erasures(
                &partitions,
                self.options.resweep_after,
                self.options.sweeps_of_erased,
                SESSIONS,
            )
            .await?;
        for due in erased {
            hand_on(jobs, Job::Erasure(due.session)).await;
        }
        let mut first_error = None;
        for partition in partitions {
            let begun = Instant::now();
            if cursors.coverage.get(&partition).is_some_and(|due| begun < *due) {
                continue;
            }
            let is_first = !cursors.coverage.contains_key(&partition);
            match self.cover(partition, is_first).await {
                Ok(looked_for) => {
                    let of_objects = begun.elapsed().saturating_mul(2);
                    let rest = looked_for.saturating_mul(REST_OF_COVERAGE).max(of_objects);
                    cursors.coverage.insert(partition, begun + rest);
                }
                // What is wrong with one partition keeps no other one from being covered, and is said again until it is mended.
                Err(error) => {
                    cursors.coverage.remove(&partition);
                    first_error.get_or_insert(error);
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    async fn sweep_tails(
        &self,
        partitions: &[i32],
        after: Option<SessionId>,
        jobs: &mpsc::Sender<Job>,
    ) -> Result<Option<SessionId>, Error> {
        let sessions = self
            .store
            .sessions_of_partitions(partitions, after, SESSIONS)
            .await?;
        let is_last = sessions.len() < SESSIONS as usize;
        let next = sessions.last().copied().filter(|_| !is_last);
        for tail in self.store.hot_tails(&sessions).await? {
            if due(&tail, self.options.valve_bytes).is_some() {
                hand_on(jobs, Job::Tail(tail.session)).await;
            }
        }
        Ok(next)
    }

    async fn sweep_states(
        &self,
        partitions: &[i32],
        (by, cause): (DueBy, SnapshotCause),
        after: Option<SessionId>,
        jobs: &mpsc::Sender<Job>,
    ) -> Result<Option<SessionId>, Error> {
        let page = self.store.due_snapshots(partitions, by, after, SESSIONS).await?;
        for session in page.due {
            hand_on(jobs, Job::Snapshot(session, cause)).await;
        }
        Ok(page.next_after)
    }
}

/// Whoever takes jobs has ended, and so has the sweep.
async fn hand_on(jobs: &mpsc::Sender<Job>, job: Job) {
    jobs.send(job).await.ok();
}

/// A state has to be there before the topic drops what it holds: half of the retention is left for that.
fn half(retention: Duration) -> Duration {
    retention / 2
}
