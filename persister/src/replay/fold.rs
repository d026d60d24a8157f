//! The rest of a partition, as the persister folds it: the same batches, each one transaction.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use wakelog_store::{Claim, Progress};

use super::batches::{DecodedBatch, decoded_batches};
use super::load::tell;
use super::report::{Missing, ReplayPhase, ReplayedPartition};
use super::skip::Skip;
use super::{Hear, Replay, coverage};
use crate::Error;
use crate::batch::{BatchError, BatchPlan, fold_batch};
use crate::cache::SessionCache;
use crate::commit_outcome::{CommitOutcome, SentCommit, commit_outcome};
use crate::log_fits::log_fits;
use crate::pauses::Pauses;
use crate::status::StopReason;
use crate::undecodable_limit::{UndecodableLimit, UndecodableWindow};
use crate::verdict::{Verdict, verdict};

/// Session states that are kept between batches.
const CACHED_SESSIONS: usize = 10_000;

/// How long a batch is tried while the store fails.
const PATIENCE: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// One partition to fold.
pub(super) struct FoldTask {
    pub(super) replay: Replay,
    pub(super) partition: i32,
    /// The log's end.
    pub(super) to: i64,
    pub(super) incarnation: u32,
    /// The rebuild's.
    pub(super) epoch: i64,
    pub(super) stop: CancellationToken,
    pub(super) hear: Hear,
}

/// What became of a partition.
pub(super) enum Folded {
    /// It is folded up to the log's end.
    Done(ReplayedPartition),
    /// The topic no longer has what comes next.
    Missing(Missing),
}

impl FoldTask {
    pub(super) async fn run(self) -> Result<Folded, Error> {
        let (store, partition) = (&self.replay.store, self.partition);
        let claim = store
            .claim_for_rebuild(&self.replay.topic, partition, self.epoch)
            .await?;
        match log_fits(&progress_of(partition, &claim), &self.replay.reader).await? {
            None => {}
            Some(StopReason::RetentionHole { next_offset, low }) => {
                return self.dropped(next_offset, low).await;
            }
            Some(reason) => return Err(Error::Stopped { partition, reason }),
        }
        let skip = match self.replay.objects {
            Some(_) => Some(Skip::of(store, partition, self.incarnation).await?),
            None => None,
        };
        let mut folded = ReplayedPartition {
            partition,
            from: claim.next_offset,
            next_offset: claim.next_offset,
            records: 0,
            skipped: 0,
        };
        let mut cache = SessionCache::new(CACHED_SESSIONS);
        let mut window = UndecodableWindow::new(UndecodableLimit::default());
        let mut batches = decoded_batches(&self.replay.reader, partition, claim.next_offset, self.to);
        while let Some(batch) = batches.recv().await {
            let mut batch = batch?;
            if !self.replay.accept_undecodable {
                check_limit(partition, &mut window, &batch)?;
            }
            folded.records += batch.records.len() as u64;
            if let Some(skip) = &skip {
                folded.skipped += skip.drop_from(store, &mut batch.records).await?;
            }
            let plan = BatchPlan {
                topic: &self.replay.topic,
                partition,
                offsets: SentCommit {
                    epoch: claim.epoch,
                    from: folded.next_offset,
                    to: batch.to,
                },
                last_record_crc: batch.last_record_crc,
                records: &batch.records,
            };
            self.until_committed(&plan, &mut cache).await?;
            folded.next_offset = batch.to;
            let phase = ReplayPhase::Folding { partition };
            let (done, total) = (batch.to - folded.from, self.to - folded.from);
            tell(&self.hear, phase, done.unsigned_abs(), Some(total.unsigned_abs()));
            if self.stop.is_cancelled() {
                return Err(Error::Interrupted);
            }
        }
        match folded.next_offset < self.to {
            true => Err(Error::LogTooShort {
                partition,
                next_offset: self.to,
                high: folded.next_offset,
            }),
            false => Ok(Folded::Done(folded)),
        }
    }

    /// The topic has dropped records since this rebuild was begun. What the archive has come to cover since then is lost to this
    /// rebuild only.
    async fn dropped(&self, from: i64, to: i64) -> Result<Folded, Error> {
        let partition = self.partition;
        let covered = match &self.replay.objects {
            Some(objects) => coverage::newest(objects).await?.offset(partition),
            None => 0,
        };
        match covered >= to {
            true => Err(Error::DroppedMeanwhile { partition, from, to }),
            false => Ok(Folded::Missing(Missing::Records {
                partition,
                from,
                to,
                from_archive: self.replay.objects.is_some(),
            })),
        }
    }

    /// Tries a batch until its COMMIT is known, for a bounded time.
    async fn until_committed(&self, plan: &BatchPlan<'_>, cache: &mut SessionCache) -> Result<(), Error> {
        let mut pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
        let deadline = Instant::now() + PATIENCE;
        let mut is_in_doubt = false;
        loop {
            let error = match fold_batch(&self.replay.store, plan, cache).await {
                Ok(committed) => {
                    cache.absorb(committed.states);
                    return Ok(());
                }
                Err(error) => error,
            };
            cache.clear();
            let partition = plan.partition;
            match verdict(&error, is_in_doubt) {
                Verdict::Redo => {}
                Verdict::ReadProgress => {
                    is_in_doubt = true;
                    match self.commit_outcome(plan).await {
                        Ok(CommitOutcome::Ours) => return Ok(()),
                        Ok(CommitOutcome::NotApplied) => {}
                        Ok(CommitOutcome::Fenced { .. }) => return Err(Error::OtherOwner { partition }),
                        Ok(CommitOutcome::WentBack { detail }) => return Err(Error::LostCommits { detail }),
                        Ok(CommitOutcome::Impossible { detail }) => return Err(Error::Bug { detail }),
                        Err(error) => tracing::warn!(partition, %error, "reading progress failed"),
                    }
                }
                Verdict::Fenced => return Err(Error::OtherOwner { partition }),
                Verdict::WentBack { detail } => return Err(Error::LostCommits { detail }),
                Verdict::Stop(reason) => return Err(Error::Stopped { partition, reason }),
                Verdict::Die => return Err(Error::Failpoint),
            }
            if Instant::now() >= deadline {
                return Err(last_error(partition, error));
            }
            let pause = pauses.next_pause();
            tracing::warn!(partition, %error, pause_ms = pause.as_millis() as u64, "a batch waits");
            tokio::select! {
                () = self.stop.cancelled() => return Err(Error::Interrupted),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn commit_outcome(&self, plan: &BatchPlan<'_>) -> Result<CommitOutcome, wakelog_store::Error> {
        let progress = self.replay.store.progress(plan.topic, plan.partition).await?;
        Ok(commit_outcome(plan.offsets, progress.as_ref()))
    }
}

fn progress_of(partition: i32, claim: &Claim) -> Progress {
    Progress {
        partition,
        epoch: claim.epoch,
        next_offset: claim.next_offset,
        last_record_crc: claim.last_record_crc,
    }
}

/// As the persister: a build that can't read the log must not drain it into quarantine.
fn check_limit(partition: i32, window: &mut UndecodableWindow, batch: &DecodedBatch) -> Result<(), Error> {
    for record in &batch.records {
        window.push(record.undecodable_key());
        if window.is_exceeded() {
            let (undecodable, records) = (window.undecodable(), window.records());
            let reason = StopReason::Undecodable { undecodable, records };
            return Err(Error::Stopped { partition, reason });
        }
    }
    Ok(())
}

fn last_error(partition: i32, error: BatchError) -> Error {
    match error {
        BatchError::Store(error) | BatchError::CommitUnknown { error, .. } => Error::Store(error),
        error => Error::Bug {
            detail: format!("partition {partition}: {error}"),
        },
    }
}
