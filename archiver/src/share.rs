//! Which partitions this archiver looks after.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wakelog_stream::{ConsumerEvent, GroupConsumer, LogReader, PartitionOwner, PartitionRecords};

use crate::Error;
use crate::job::Job;
use crate::options::{Options, Share};
use crate::telemetry;
use crate::wake::wakes;

/// Records that are taken from a partition's queue at a time. They are looked at and dropped.
const BATCH_RECORDS: usize = 1_000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// The partitions of this archiver. Clones see the same ones. Two archivers may look after one partition for a while: what
/// they do is decided in the database, so that does no harm.
#[derive(Debug, Clone, Default)]
pub(crate) struct Partitions(Arc<Mutex<BTreeSet<i32>>>);

impl Partitions {
    pub(crate) fn all(count: i32) -> Self {
        Self(Arc::new(Mutex::new((0..count).collect())))
    }

    pub(crate) fn list(&self) -> Vec<i32> {
        self.lock().iter().copied().collect()
    }

    fn add(&self, partition: i32) {
        self.change(|partitions| partitions.insert(partition));
    }

    fn remove(&self, partition: i32) {
        self.change(|partitions| partitions.remove(&partition));
    }

    fn clear(&self) {
        self.change(BTreeSet::clear);
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeSet<i32>) -> T) {
        let mut partitions = self.lock();
        change(&mut partitions);
        telemetry::owned_partitions(partitions.len());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a partition at its end: what was written before is found by a sweep.
struct AtTheEnd {
    reader: LogReader,
    partitions: Partitions,
}

impl PartitionOwner for AtTheEnd {
    fn assigned(
        &self,
        partition: i32,
    ) -> BoxFuture<'static, Result<i64, Box<dyn std::error::Error + Send + Sync>>> {
        let (reader, partitions) = (self.reader.clone(), self.partitions.clone());
        async move {
            let end = reader.watermarks(partition).await?.high;
            partitions.add(partition);
            Ok(end)
        }
        .boxed()
    }

    fn revoked(&self, partition: i32, _lost: bool) -> BoxFuture<'static, ()> {
        self.partitions.remove(partition);
        async {}.boxed()
    }
}

/// Keeps a share of the partitions until `stop`, and hands on what its records wake. Returns an error if the group can't be
/// kept up; the caller tries again.
pub(crate) async fn keep_share(
    options: &Options,
    partitions: &Partitions,
    jobs: &mpsc::Sender<Job>,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let Share::Group(stream) = &options.share else {
        stop.cancelled().await;
        return Ok(());
    };
    let owner = AtTheEnd {
        reader: LogReader::new(stream)?,
        partitions: partitions.clone(),
    };
    let (consumer, mut events) = GroupConsumer::start(stream, Arc::new(owner))?;
    let ended = loop {
        let event = tokio::select! {
            () = stop.cancelled() => break Ok(()),
            event = events.recv() => event,
        };
        match event {
            Some(ConsumerEvent::Assigned { partition, records }) => {
                tracing::info!(partition, "looks after a partition");
                tokio::spawn(listen(records, jobs.clone()));
            }
            Some(ConsumerEvent::Revoked { partition }) => {
                tracing::info!(partition, "gave a partition back");
            }
            Some(ConsumerEvent::PartitionError { partition, error }) => {
                // Its sessions are found by sweeps all the same.
                tracing::warn!(partition, %error, "a partition wakes nobody");
            }
            Some(ConsumerEvent::Fatal(error)) => break Err(Error::Stream(error)),
            None => break Err(Error::TaskDied),
        }
    };
    if let Err(error) = consumer.leave(events, options.drain_timeout).await {
        tracing::warn!(%error, "leaving the consumer group failed");
    }
    partitions.clear();
    ended
}

/// Hands on what a partition's records wake, until the partition is given back.
async fn listen(mut records: PartitionRecords, jobs: mpsc::Sender<Job>) {
    while let Some(batch) = records.next_batch(BATCH_RECORDS, BATCH_BYTES).await {
        let woken: std::collections::HashSet<Job> = batch.iter().filter_map(wakes).collect();
        drop(batch);
        for job in woken {
            if jobs.send(job).await.is_err() {
                return;
            }
        }
    }
}
