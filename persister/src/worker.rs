//! One partition, from its claim to its end: read a batch, fold it, commit it, again.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures::FutureExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wakelog_store::Claim;
use wakelog_stream::{PartitionRecords, Record};

use crate::admission::{Admission, Admitted};
use crate::batch::{BatchError, BatchPlan, Committed, fold_batch};
use crate::cache::SessionCache;
use crate::commit_outcome::{CommitOutcome, SentCommit, commit_outcome};
use crate::counts::Counts;
use crate::decode::{Decoded, decode};
use crate::lost_commits::report;
use crate::pauses::Pauses;
use crate::shared::Shared;
use crate::start::{RecordCheck, StartDecision, end_is_back};
use crate::status::{PartitionState, StopReason};
use crate::telemetry;
use crate::undecodable_limit::UndecodableWindow;
use crate::verdict::{Verdict, verdict};

/// Why a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkerEnd {
    /// The partition was given back, or the consumer is gone.
    Revoked,
    /// Another process has claimed the partition.
    Fenced,
    /// The store has lost commits: what it lacks has to be folded again.
    StoreWentBack,
    /// Records came for a partition that nothing here has a claim on.
    Unclaimed,
    /// The service dies here. Tests only.
    Died,
}

/// Why the folding of a partition ended.
enum FoldEnd {
    Worker(WorkerEnd),
    Stop(StopReason),
}

impl FoldEnd {
    /// The transaction is rolled back by then. What panicked once on these records would do so again.
    fn panicked() -> Self {
        Self::Stop(StopReason::Bug {
            detail: "the worker panicked".to_owned(),
        })
    }
}

/// Folds one partition.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    partition: i32,
    epoch: i64,
    /// `next_offset` as the store has it.
    stored_offset: i64,
    admission: Admission,
    cache: SessionCache,
    window: UndecodableWindow,
    courtesy: Courtesy,
    stop: CancellationToken,
}

/// Where a worker says how far it has come, for the group's offset in the log.
#[derive(Clone)]
pub(crate) struct Courtesy {
    pub(crate) commits: mpsc::Sender<(i32, i64)>,
    /// Whether the group's offset of before has been looked at.
    pub(crate) may_commit: Arc<AtomicBool>,
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        partition: i32,
        claim: &Claim,
        courtesy: Courtesy,
        stop: CancellationToken,
    ) -> Self {
        Self {
            partition,
            epoch: claim.epoch,
            stored_offset: claim.next_offset,
            admission: Admission::new(claim.next_offset, None),
            cache: SessionCache::new(shared.options.cached_sessions),
            window: UndecodableWindow::new(shared.options.undecodable_limit),
            shared,
            courtesy,
            stop,
        }
    }

    /// Folds until the partition is given back, lost or stopped. A stopped partition stays with this process, which
    /// reads and drops what comes: another process would have to stop it just the same.
    pub(crate) async fn run(mut self, start: StartDecision, mut records: PartitionRecords) -> WorkerEnd {
        let folding = AssertUnwindSafe(self.fold(start, &mut records))
            .catch_unwind()
            .await;
        match folding.unwrap_or_else(|_| FoldEnd::panicked()) {
            FoldEnd::Worker(end) => end,
            FoldEnd::Stop(reason) => self.stay_stopped(reason, &mut records).await,
        }
    }

    async fn fold(&mut self, start: StartDecision, records: &mut PartitionRecords) -> FoldEnd {
        let started = match start {
            StartDecision::Stop(reason) => Err(FoldEnd::Stop(reason)),
            StartDecision::Start { check, .. } => self.begin(check),
            StartDecision::AwaitEnd { check, .. } => match self.await_end().await {
                Ok(()) => self.begin(check),
                Err(end) => Err(end),
            },
        };
        if let Err(end) = started {
            return end;
        }
        let (max_records, max_bytes) = (
            self.shared.options.max_batch_records,
            self.shared.options.max_batch_bytes,
        );
        loop {
            let batch = tokio::select! {
                biased;
                () = self.stop.cancelled() => None,
                batch = records.next_batch(max_records, max_bytes) => batch,
            };
            let Some(batch) = batch else {
                return FoldEnd::Worker(WorkerEnd::Revoked);
            };
            if let Err(end) = self.take(batch).await {
                return end;
            }
        }
    }

    fn begin(&mut self, check: Option<RecordCheck>) -> Result<(), FoldEnd> {
        self.admission = Admission::new(self.stored_offset, check);
        self.show_progress();
        Ok(())
    }

    /// Waits until the log ends where the store is, or beyond.
    async fn await_end(&mut self) -> Result<(), FoldEnd> {
        self.show(PartitionState::Starting {
            epoch: self.epoch,
            next_offset: self.stored_offset,
        });
        let deadline = Instant::now() + self.shared.options.end_wait;
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return Err(FoldEnd::Worker(WorkerEnd::Revoked)),
                () = tokio::time::sleep(self.shared.options.end_poll) => {}
            }
            let (partition, next_offset) = (self.partition, self.stored_offset);
            let high = match self.shared.reader.watermarks(partition).await {
                Ok(watermarks) if end_is_back(next_offset, &watermarks) => return Ok(()),
                Ok(watermarks) => watermarks.high,
                Err(error) => {
                    // It proves nothing; the deadline is for a log that is there and too short.
                    tracing::warn!(partition, %error, "looking for the end of the log failed");
                    continue;
                }
            };
            if Instant::now() >= deadline {
                return Err(FoldEnd::Stop(StopReason::BeyondEnd { next_offset, high }));
            }
            tracing::warn!(
                partition,
                next_offset,
                high,
                "the log ends below what was folded, waiting for its end"
            );
        }
    }

    /// Folds what the log handed out.
    async fn take(&mut self, mut records: Vec<Record>) -> Result<(), FoldEnd> {
        match self.admission.admit(&records) {
            Admitted::From(first) => {
                self.show_progress();
                records.drain(..first);
                self.fold_records(records).await
            }
            Admitted::Stop(reason) => Err(FoldEnd::Stop(reason)),
        }
    }

    /// Folds records that follow each other, until their COMMIT is known.
    async fn fold_records(&mut self, records: Vec<Record>) -> Result<(), FoldEnd> {
        let Some(last) = records.last() else {
            return Ok(());
        };
        let (to, last_record_crc) = (last.offset + 1, last.crc());
        // Opening bodies and hashing them is work for a core, before the row lock is taken and once for all tries.
        let decoding =
            tokio::task::spawn_blocking(move || records.iter().map(decode).collect::<Vec<Decoded>>());
        let decoded = decoding.await.map_err(|error| {
            FoldEnd::Stop(StopReason::Bug {
                detail: format!("decoding a batch failed: {error}"),
            })
        })?;
        self.check_limit(&decoded)?;
        let shared = self.shared.clone();
        let plan = BatchPlan {
            topic: shared.topic(),
            partition: self.partition,
            offsets: SentCommit {
                epoch: self.epoch,
                from: self.stored_offset,
                to,
            },
            last_record_crc,
            records: &decoded,
        };
        let started = Instant::now();
        let counts = self.until_committed(&plan).await?;
        telemetry::batch_committed(decoded.len(), started.elapsed(), &counts);
        self.stored_offset = to;
        self.admission.advance(to);
        self.show_progress();
        let may_commit = self.courtesy.may_commit.load(Ordering::Acquire);
        if !may_commit || self.courtesy.commits.try_send((self.partition, to)).is_err() {
            tracing::trace!(partition = self.partition, "skipped a courtesy commit");
        }
        Ok(())
    }

    fn check_limit(&mut self, decoded: &[Decoded]) -> Result<(), FoldEnd> {
        for record in decoded {
            self.window.push(record.undecodable_key());
            if self.window.is_exceeded() {
                let (undecodable, records) = (self.window.undecodable(), self.window.records());
                return Err(FoldEnd::Stop(StopReason::Undecodable { undecodable, records }));
            }
        }
        Ok(())
    }

    /// Tries a batch until its COMMIT is known. Only giving the partition back ends that without it.
    async fn until_committed(&mut self, plan: &BatchPlan<'_>) -> Result<Counts, FoldEnd> {
        let mut pauses = self.pauses();
        // What the batch came to if a COMMIT that was not answered turns out to be applied.
        let mut in_doubt: Option<Counts> = None;
        loop {
            let error = match fold_batch(&self.shared.store, plan, &self.cache).await {
                Ok(Committed { states, counts }) => {
                    self.cache.absorb(states);
                    return Ok(counts);
                }
                Err(error) => error,
            };
            self.cache.clear();
            match verdict(&error, in_doubt.is_some()) {
                Verdict::Redo => {
                    telemetry::batch_retried();
                    self.degrade(&mut pauses, error.to_string()).await?;
                }
                Verdict::ReadProgress => {
                    if let BatchError::CommitUnknown { counts, error } = error {
                        telemetry::commit_unknown();
                        tracing::warn!(partition = self.partition, %error, "nobody answered a commit, reading progress");
                        in_doubt = Some(counts);
                    }
                    if self.is_committed(plan.offsets, &mut pauses).await? {
                        return Ok(in_doubt.unwrap_or_default());
                    }
                }
                Verdict::Fenced => return Err(self.fenced()),
                Verdict::WentBack { detail } => return Err(self.store_went_back(&detail)),
                Verdict::Stop(reason) => return Err(FoldEnd::Stop(reason)),
                Verdict::Die => return Err(FoldEnd::Worker(WorkerEnd::Died)),
            }
        }
    }

    /// Finds out whether a COMMIT that was not answered was applied.
    async fn is_committed(&mut self, sent: SentCommit, pauses: &mut Pauses) -> Result<bool, FoldEnd> {
        loop {
            let progress = match self
                .shared
                .store
                .progress(self.shared.topic(), self.partition)
                .await
            {
                Ok(progress) => progress,
                Err(error) => {
                    self.degrade(pauses, error.to_string()).await?;
                    continue;
                }
            };
            return match commit_outcome(sent, progress.as_ref()) {
                CommitOutcome::Ours => Ok(true),
                CommitOutcome::NotApplied => Ok(false),
                CommitOutcome::Fenced { current } => {
                    tracing::debug!(
                        partition = self.partition,
                        current,
                        "another claim came after an unanswered commit"
                    );
                    Err(self.fenced())
                }
                CommitOutcome::WentBack { detail } => Err(self.store_went_back(&detail)),
                CommitOutcome::Impossible { detail } => Err(FoldEnd::Stop(StopReason::Bug { detail })),
            };
        }
    }

    fn fenced(&self) -> FoldEnd {
        telemetry::fenced();
        if self.stop.is_cancelled() {
            // Given back meanwhile: whoever has it now did as is right.
            return FoldEnd::Worker(WorkerEnd::Revoked);
        }
        tracing::warn!(
            partition = self.partition,
            epoch = self.epoch,
            "another process has claimed the partition"
        );
        FoldEnd::Worker(WorkerEnd::Fenced)
    }

    /// Nothing is lost by it as long as the log has what has to be folded again; who claims the partition next looks.
    fn store_went_back(&self, detail: &str) -> FoldEnd {
        report(self.partition, detail);
        FoldEnd::Worker(WorkerEnd::StoreWentBack)
    }

    /// Says that the batch waits, and waits. Ends early only if the partition is given back.
    async fn degrade(&self, pauses: &mut Pauses, reason: String) -> Result<(), FoldEnd> {
        let pause = pauses.next_pause();
        tracing::warn!(partition = self.partition, error = %reason, pause_ms = pause.as_millis() as u64, "a batch waits");
        let (epoch, next_offset) = (self.epoch, self.stored_offset);
        self.show(PartitionState::Degraded {
            epoch,
            next_offset,
            reason,
        });
        tokio::select! {
            () = self.stop.cancelled() => Err(FoldEnd::Worker(WorkerEnd::Revoked)),
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }

    fn pauses(&self) -> Pauses {
        Pauses::new(self.shared.options.first_pause, self.shared.options.longest_pause)
    }

    async fn stay_stopped(&mut self, reason: StopReason, records: &mut PartitionRecords) -> WorkerEnd {
        self.cache.clear();
        let topic = self.shared.topic();
        tracing::error!(topic, partition = self.partition, reason = reason.name(), detail = %reason, "partition stopped");
        let _gauge = telemetry::StoppedPartition::new(&reason);
        self.show(PartitionState::Stopped { reason });
        let options = &self.shared.options;
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return WorkerEnd::Revoked,
                dropped = records.next_batch(options.max_batch_records, options.max_batch_bytes) => {
                    if dropped.is_none() {
                        // No more to drop, but it is this process that holds the stopped partition.
                        self.stop.cancelled().await;
                    }
                }
            }
        }
    }

    /// Running, once the log has proved to be the one that was folded.
    fn show_progress(&self) {
        let (epoch, next_offset) = (self.epoch, self.stored_offset);
        self.show(if self.admission.is_check_pending() {
            PartitionState::Starting { epoch, next_offset }
        } else {
            PartitionState::Running { epoch, next_offset }
        });
    }

    /// After the partition was given back its state is another owner's to show.
    fn show(&self, state: PartitionState) {
        if !self.stop.is_cancelled() {
            self.shared.status.set_partition(self.partition, state);
        }
    }
}
