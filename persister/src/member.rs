//! One membership in the consumer group, from joining to leaving: starts a worker for each partition that comes, and
//! sees to it that the whole member leaves and joins again when one of them is fenced.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use wakelog_stream::{ConsumerEvent, Error as StreamError, GroupConsumer, PartitionRecords};

use crate::assignments::Assignments;
use crate::lost_commits::Look;
use crate::owner::{Owner, all_ended};
use crate::shared::Shared;
use crate::status::PartitionState;
use crate::worker::{Courtesy, Worker, WorkerEnd};

/// Courtesy commits that may wait; more are left out.
const WAITING_COMMITS: usize = 256;

/// Why a member joins again when the store has less than it had.
const LOST_COMMITS: &str = "the database has lost commits";

/// Why a membership ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MembershipEnd {
    /// The caller wants it.
    Shutdown,
    /// The consumer has ended; a new one has to be made.
    ConsumerEnded(String),
    /// The service dies here. Tests only.
    Died,
}

/// One membership. The consumer leaves and joins again by itself, with growing pauses, until it gives up.
pub(crate) struct Member {
    shared: Arc<Shared>,
    assignments: Arc<Assignments>,
    died: CancellationToken,
    consumer: GroupConsumer,
    events: mpsc::Receiver<ConsumerEvent>,
    committed: mpsc::Receiver<(i32, i64)>,
    committing: mpsc::Sender<(i32, i64)>,
    workers: JoinSet<WorkerEnd>,
}

impl Member {
    pub(crate) fn join(shared: &Arc<Shared>) -> Result<Self, StreamError> {
        let assignments = Arc::new(Assignments::default());
        let died = CancellationToken::new();
        let (committing, committed) = mpsc::channel(WAITING_COMMITS);
        let owner = Owner {
            shared: shared.clone(),
            assignments: assignments.clone(),
            died: died.clone(),
        };
        let (consumer, events) = GroupConsumer::start(&shared.options.stream, Arc::new(owner))?;
        let (shared, workers) = (shared.clone(), JoinSet::new());
        Ok(Self {
            shared,
            assignments,
            died,
            consumer,
            events,
            committed,
            committing,
            workers,
        })
    }

    /// Runs until the caller wants an end or the consumer has come to one.
    pub(crate) async fn supervise(&mut self, shutdown: &CancellationToken) -> MembershipEnd {
        loop {
            let end = tokio::select! {
                biased;
                () = shutdown.cancelled() => Some(MembershipEnd::Shutdown),
                () = self.died.cancelled() => Some(MembershipEnd::Died),
                Some(ended) = self.workers.join_next(), if !self.workers.is_empty() => self.worker_ended(ended),
                () = self.shared.store_went_back.notified() => {
                    self.consumer.rejoin(LOST_COMMITS);
                    None
                }
                event = self.events.recv() => self.take_event(event),
                Some((partition, next_offset)) = self.committed.recv() => {
                    self.consumer.committed(partition, next_offset);
                    None
                }
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// Finishes the batches in flight and leaves the group. Bounded: what takes longer is fenced by the next claim.
    pub(crate) async fn leave(mut self) {
        let bound = self.shared.options.drain_wait;
        let leases = self.assignments.release_all();
        if !all_ended(&leases, bound).await {
            tracing::warn!("leaving the group with a batch in flight, the next claim fences it");
        }
        while let Ok((partition, next_offset)) = self.committed.try_recv() {
            self.consumer.committed(partition, next_offset);
        }
        // Not aborted: what is still in flight may finish, or be fenced.
        self.workers.detach_all();
        if let Err(error) = self.consumer.leave(self.events, bound).await {
            tracing::warn!(%error, "leaving the consumer group failed");
        }
        // A last rebalance may have claimed something on the way out.
        self.assignments.release_all();
        self.shared.status.clear_partitions();
    }

    fn take_event(&mut self, event: Option<ConsumerEvent>) -> Option<MembershipEnd> {
        match event {
            None => return Some(MembershipEnd::ConsumerEnded("the consumer has ended".to_owned())),
            Some(ConsumerEvent::Fatal(error)) => {
                return Some(MembershipEnd::ConsumerEnded(crate::chain(&error)));
            }
            Some(ConsumerEvent::Assigned { partition, records }) => self.start_worker(partition, records),
            // Its worker was told in the callback.
            Some(ConsumerEvent::Revoked { .. }) => {}
            Some(ConsumerEvent::PartitionError { partition, error }) => {
                self.partition_failed(partition, &error)
            }
        }
        None
    }

    fn start_worker(&mut self, partition: i32, mut records: PartitionRecords) {
        let Some(assignment) = self.assignments.start(partition) else {
            tracing::debug!(partition, "records came for a partition that was given back");
            self.workers.spawn(async move {
                // They have ended by then. If they have not, nobody would ever read them.
                match records.next_batch(1, 1).await {
                    None => WorkerEnd::Revoked,
                    Some(_) => WorkerEnd::Unclaimed,
                }
            });
            return;
        };
        let (claim, lease) = (assignment.claim, assignment.lease);
        let (epoch, next_offset) = (claim.epoch, claim.next_offset);
        self.shared
            .status
            .set_partition(partition, PartitionState::Starting { epoch, next_offset });
        let courtesy = Courtesy {
            commits: self.committing.clone(),
            may_commit: Arc::new(AtomicBool::new(false)),
        };
        let look = Look {
            shared: self.shared.clone(),
            partition,
            next_offset,
            courtesy: courtesy.clone(),
            stop: lease.stop.clone(),
        };
        tokio::spawn(look.for_lost_commits());
        let worker = Worker::new(self.shared.clone(), partition, &claim, courtesy, lease.stop);
        let ended = lease.ended.drop_guard();
        self.workers.spawn(async move {
            let end = Box::pin(worker.run(assignment.start, records)).await;
            drop(ended);
            end
        });
    }

    fn worker_ended(&self, ended: Result<WorkerEnd, JoinError>) -> Option<MembershipEnd> {
        match ended {
            Ok(WorkerEnd::Revoked) => {}
            Ok(WorkerEnd::Fenced) => self.consumer.rejoin("another process has claimed a partition"),
            Ok(WorkerEnd::StoreWentBack) => self.consumer.rejoin(LOST_COMMITS),
            Ok(WorkerEnd::Unclaimed) => self
                .consumer
                .rejoin("records came for a partition without a claim"),
            Ok(WorkerEnd::Died) => return Some(MembershipEnd::Died),
            Err(error) => self.consumer.rejoin(format!("a worker was torn down: {error}")),
        }
        None
    }

    /// Leaves and joins again, which decides anew where the partition starts, or that it may not.
    fn partition_failed(&self, partition: i32, error: &StreamError) {
        let detail = crate::chain(error);
        if let StreamError::OwnerRefused { .. } = error {
            // The claim failed, or came too late; the consumer leaves and joins again by itself.
            tracing::warn!(partition, error = %detail, "claiming a partition failed");
            return;
        }
        let held = self.shared.status.partitions();
        let Some((_, next_offset)) = held.get(&partition).and_then(PartitionState::position) else {
            tracing::debug!(partition, error = %detail, "a partition that is not folded can't be read");
            return;
        };
        let offset = match error {
            StreamError::OffsetGap { expected, .. } => *expected,
            _ => next_offset,
        };
        tracing::warn!(partition, offset, error = %detail, "reading a partition failed");
        self.shared.unreadable.failed(partition, offset, detail.clone());
        self.consumer
            .rejoin(format!("partition {partition} can't be read: {detail}"));
    }
}
