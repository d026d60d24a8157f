//! Waiting until the persister has folded what the log holds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::poll::Poll;
use crate::{Error, metrics};

/// The persister's progress, read once for all calls that ask at the same time.
#[derive(Debug, Default)]
pub(crate) struct ProgressView {
    partitions: Mutex<HashMap<i32, Arc<tokio::sync::Mutex<Option<Reading>>>>>,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    started: Instant,
    /// `None`: the read failed.
    next_offset: Option<i64>,
}

impl ProgressView {
    /// The offset that the persister folds next, through `read` or out of a reading that somebody else has made: one that
    /// began after this call, so never an older one. `None` if that one failed; who reads learns why.
    async fn next_offset(
        &self,
        partition: i32,
        read: impl Future<Output = Result<i64, Error>>,
    ) -> Result<Option<i64>, Error> {
        let asked = Instant::now();
        let slot = {
            let mut partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(partitions.entry(partition).or_default())
        };
        let mut reading = slot.lock().await;
        if let Some(reading) = *reading
            && reading.started >= asked
        {
            return Ok(reading.next_offset);
        }
        let started = Instant::now();
        let outcome = read.await;
        *reading = Some(Reading {
            started,
            next_offset: outcome.as_ref().ok().copied(),
        });
        outcome.map(Some)
    }
}

impl Core {
    /// The barrier: waits until the persister has folded all that the partition holds now. What is read afterwards
    /// holds everything that was acknowledged before.
    pub(crate) async fn pass_end(&self, partition: i32, abandoned: &CancellationToken) -> Result<(), Error> {
        let mut poll = Poll::new(
            "the persister at the partition's end",
            self.options.apply_timeout,
            abandoned,
        );
        let end = self.reader.watermarks(partition).await?.high;
        self.pass(partition, end, &mut poll).await?;
        metrics::barrier(poll.waited());
        Ok(())
    }

    /// Waits until the persister's next offset is `next_offset` or beyond. A read that fails is tried again until the
    /// bound passes, and is the answer only then.
    pub(crate) async fn pass(
        &self,
        partition: i32,
        next_offset: i64,
        poll: &mut Poll<'_>,
    ) -> Result<(), Error> {
        loop {
            let read = self
                .progress
                .next_offset(partition, self.read_next_offset(partition))
                .await;
            let failure = match read {
                Ok(Some(reached)) if reached >= next_offset => return Ok(()),
                Ok(_) => None,
                Err(error) => Some(error),
            };
            poll.pause_after(failure).await?;
        }
    }

    /// 0 for a partition that no persister ever claimed.
    async fn read_next_offset(&self, partition: i32) -> Result<i64, Error> {
        let progress = self.store.progress(&self.options.topic, partition).await?;
        Ok(progress.map_or(0, |progress| progress.next_offset))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    use futures::future::join_all;

    use super::*;

    async fn count(reads: &AtomicI64) -> Result<i64, Error> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(reads.fetch_add(1, Ordering::SeqCst))
    }

    #[tokio::test]
    async fn those_who_ask_at_the_same_time_share_a_reading() {
        let (view, reads) = (ProgressView::default(), AtomicI64::new(1));
        let all = join_all((0..50).map(|_| view.next_offset(0, count(&reads)))).await;
        assert!(all.into_iter().all(|reading| reading.unwrap().is_some()));
        // The first reading is shared with nobody who asked after it began.
        assert!(reads.load(Ordering::SeqCst) <= 4, "{reads:?}");
    }

    #[tokio::test]
    async fn who_asks_later_gets_a_later_reading() {
        let (view, reads) = (ProgressView::default(), AtomicI64::new(1));
        for expected in 1..5 {
            assert_eq!(view.next_offset(0, count(&reads)).await.unwrap(), Some(expected));
        }
    }

    #[tokio::test]
    async fn partitions_are_read_apart() {
        let (view, reads) = (ProgressView::default(), AtomicI64::new(1));
        let (one, other) = tokio::join!(
            view.next_offset(0, count(&reads)),
            view.next_offset(1, count(&reads))
        );
        assert_ne!(one.unwrap(), other.unwrap());
    }

    #[tokio::test]
    async fn a_reading_that_failed_is_no_progress() {
        let (view, reads) = (ProgressView::default(), AtomicI64::new(1));
        let failed = view.next_offset(0, async { Err(Error::TaskDied) }).await;
        assert!(matches!(failed, Err(Error::TaskDied)));
        assert_eq!(view.next_offset(0, count(&reads)).await.unwrap(), Some(1));
    }
}
