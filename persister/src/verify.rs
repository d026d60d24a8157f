//! Folds the log again, from its start and into memory, and compares what comes out with the hot tail.
//!
//! | module | decision |
//! |---|---|
//! | [`report`] | what it says |
//! | `refold` | what the store must hold; digests only, no bodies |
//! | `compare` | what it holds |
//! | `archived` | what has left the hot tail, and where it went |
//! | `differences` | which differences are kept, and which are taken back |
//! | `partition` | one partition, also while the persister goes on |
//!
//! It shares the fold with the persister and so can't find the fold's own mistakes; the tests have an oracle for that.
//! It shares neither batches nor caches nor what is written of a batch. Which of `unbound` and `wrong_partition` a
//! record on the wrong partition got depends on how far another partition was then; they are compared as one.

mod archived;
mod columns;
mod compare;
mod differences;
mod partition;
pub(crate) mod refold;
pub mod report;

use wakelog_archive::ObjectStore;
use wakelog_store::Store;
use wakelog_stream::LogReader;

use crate::Error;
use archived::Archived;
pub use report::{Difference, DifferenceKind, PartitionReport, VerifyPhase, VerifyProgress, VerifyReport};

/// Compares the hot tail with the fold of the topic, partition by partition.
///
/// The store may move on meanwhile: sessions that it changes are compared again, some times, and what is still moving
/// then is said to be ([`PartitionReport::unsettled_sessions`]). Entries that were archived must be in the manifest; with
/// `objects` the segments' indexes are compared too. `progress` is called now and then.
pub async fn verify(
    store: &Store,
    objects: Option<&ObjectStore>,
    reader: &LogReader,
    topic: &str,
    mut progress: impl FnMut(&VerifyProgress),
) -> Result<VerifyReport, Error> {
    let folded = store.progress_of_topic(topic).await?;
    let beyond_last_folded = folded
        .iter()
        .map(|of_partition| of_partition.partition + 1)
        .max()
        .unwrap_or(0);
    let partitions = reader.partition_count().await?.max(beyond_last_folded);
    let mut report = VerifyReport::default();
    for partition in 0..partitions {
        let task = partition::Task {
            archived: Archived { store, objects },
            reader,
            topic,
            partition,
            partitions,
        };
        report.add(Box::pin(task.run(&mut progress)).await?);
    }
    Ok(report)
}
