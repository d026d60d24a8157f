//! Raw librdkafka: the settings of `libs/stream`, the records that ingest makes, into a topic of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer as _, ProducerContext, ThreadedProducer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::Error;
use crate::records::RawRecord;

/// A producer without anything around it.
pub(crate) struct RawProducer {
    inner: ThreadedProducer<Reports>,
    topic: String,
    failed: Arc<AtomicU64>,
}

/// What a delivery report sets free.
enum Report {
    /// Room for another record.
    Room { _permit: OwnedSemaphorePermit },
    /// The one who waits for this very record.
    Waiting(oneshot::Sender<()>),
}

struct Reports {
    failed: Arc<AtomicU64>,
}

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = Box<Report>;

    fn delivery(&self, result: &DeliveryResult<'_>, report: Box<Report>) {
        if result.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if let Report::Waiting(waiting) = *report {
            // Nobody waits any more: the failure is seen elsewhere.
            waiting.send(()).ok();
        }
    }
}

impl RawProducer {
    /// A producer for the topic of `options`.
    pub(crate) fn new(options: &wakelog_stream::Options) -> Result<Self, Error> {
        let failed = Arc::new(AtomicU64::new(0));
        let reports = Reports {
            failed: Arc::clone(&failed),
        };
        let config = wakelog_stream::producer_config(options)?;
        Ok(Self {
            inner: config.create_with_context(reports)?,
            topic: options.topic.clone(),
            failed,
        })
    }

    /// Publishes all records, at most `in_flight` of them unreported at a time. Returns how long it took until the last
    /// was reported.
    pub(crate) async fn publish_all(
        &self,
        records: &[RawRecord],
        in_flight: usize,
    ) -> Result<Duration, Error> {
        let room = Arc::new(Semaphore::new(in_flight));
        let closed = |_| Error::Wrong("the window of the raw producer closed".to_owned());
        let started = Instant::now();
        for record in records {
            let permit = Arc::clone(&room).acquire_owned().await.map_err(closed)?;
            self.send(record, Report::Room { _permit: permit }).await?;
        }
        let all = u32::try_from(in_flight).unwrap_or(u32::MAX);
        room.acquire_many(all).await.map_err(closed)?.forget();
        let took = started.elapsed();
        self.check()?;
        Ok(took)
    }

    /// Publishes one record and waits for its report. Returns how long that took.
    pub(crate) async fn publish_one(&self, record: &RawRecord) -> Result<Duration, Error> {
        let (report, reported) = oneshot::channel();
        let started = Instant::now();
        self.send(record, Report::Waiting(report)).await?;
        let outcome = reported.await;
        let took = started.elapsed();
        self.check()?;
        outcome.map_err(|_| Error::Wrong("the raw producer lost a report".to_owned()))?;
        Ok(took)
    }

    async fn send(&self, record: &RawRecord, report: Report) -> Result<(), Error> {
        let mut next = BaseRecord::with_opaque_to(&self.topic, Box::new(report))
            .partition(record.partition)
            .key(&record.key)
            .payload(&record.value);
        loop {
            match self.inner.send(next) {
                Ok(()) => return Ok(()),
                Err((error, back)) if is_full(&error) => next = back,
                Err((error, _)) => return Err(error.into()),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn check(&self) -> Result<(), Error> {
        match self.failed.load(Ordering::Relaxed) {
            0 => Ok(()),
            failed => Err(Error::Wrong(format!("{failed} raw publishes failed"))),
        }
    }
}

impl Drop for RawProducer {
    fn drop(&mut self) {
        // What is still queued is of no use to anybody.
        self.inner
            .purge(rdkafka::producer::PurgeConfig::default().queue().inflight());
    }
}

fn is_full(error: &rdkafka::error::KafkaError) -> bool {
    error.rdkafka_error_code() == Some(rdkafka::error::RDKafkaErrorCode::QueueFull)
}
