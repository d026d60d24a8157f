//! Publishing in call order, and what a failed publish says about the log.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt;
use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseRecord, Producer as _, ProducerContext, ThreadedProducer};
use tokio::sync::oneshot;

use crate::config;
use crate::context;
use crate::error::{Effect, Error, PublishError};
use crate::options::Options;

/// A client that failed for good is replaced at most this often, so that a lasting cause does not make clients in a
/// loop.
const MIN_CLIENT_AGE: Duration = Duration::from_secs(1);

/// Publishes to the partitions of one topic. Clones share one client.
#[derive(Clone)]
pub struct Producer {
    shared: Arc<Shared>,
}

struct Shared {
    config: ClientConfig,
    topic: String,
    limit_bytes: usize,
    request_timeout: Duration,
    current: RwLock<Arc<Client>>,
}

struct Client {
    inner: ThreadedProducer<DeliveryContext>,
    made_at: Instant,
    is_learning: AtomicBool,
}

impl Producer {
    /// Makes a client. Brokers are connected to in the background; none has to be there yet.
    pub fn new(options: &Options) -> Result<Self, Error> {
        let config = config::producer(options)?;
        let client = Client::new(&config)?;
        let shared = Shared {
            config,
            topic: options.topic.clone(),
            limit_bytes: options.producer_buffer_bytes,
            request_timeout: options.request_timeout,
            current: RwLock::new(Arc::new(client)),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Enqueues a record at once, in call order for each partition. The delivery says where it got to.
    pub fn publish(&self, partition: i32, key: &str, value: &[u8]) -> Result<Delivery, PublishError> {
        self.enqueue(partition, key, value).inspect_err(count)
    }

    fn enqueue(&self, partition: i32, key: &str, value: &[u8]) -> Result<Delivery, PublishError> {
        // "It did not happen, and nobody knows": nothing is sent.
        fail::fail_point!("stream::publish", |_| Ok(Delivery::failed(
            "fail point stream::publish"
        )));
        let client = self.client();
        let (report, delivery) = oneshot::channel();
        let opaque = Box::new(Report {
            sender: report,
            bytes: key.len() + value.len(),
        });
        let record = BaseRecord::with_opaque_to(&self.shared.topic, opaque)
            .partition(partition)
            .key(key)
            .payload(value);
        let delivery = match client.inner.send(record) {
            Ok(()) => Delivery {
                state: DeliveryState::Waiting(delivery),
            },
            Err((error, _)) => {
                let refused = self.refused(&client, &error, partition, key.len() + value.len());
                if matches!(refused, PublishError::NoPartition { .. }) {
                    self.learn_aside(client);
                }
                return Err(refused);
            }
        };
        if is_outcome_hidden() {
            return Ok(delivery.with_hidden_outcome("fail point stream::publish_after"));
        }
        Ok(delivery)
    }

    /// Asks the brokers which partitions the topic has now. Of one that was added, a producer hears by itself only after a
    /// while, and refuses it until then with [`PublishError::NoPartition`].
    pub async fn learn_partitions(&self) -> Result<(), Error> {
        let (client, shared) = (self.client(), Arc::clone(&self.shared));
        let learned =
            tokio::task::spawn_blocking(move || client.learn(&shared.topic, shared.request_timeout));
        learned.await.unwrap_or_else(|error| {
            Err(Error::Thread {
                name: "learn partitions",
                reason: error.to_string(),
            })
        })
    }

    /// The same for a caller that will come again: one thread at a time asks.
    fn learn_aside(&self, client: Arc<Client>) {
        if client.is_learning.swap(true, Ordering::AcqRel) {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let asking = Arc::clone(&client);
        let spawned = std::thread::Builder::new()
            .name("producer-learn".to_owned())
            .spawn(move || {
                if let Err(error) = asking.learn(&shared.topic, shared.request_timeout) {
                    tracing::warn!(topic = shared.topic, %error, "the topic's partitions could not be asked for");
                }
                asking.is_learning.store(false, Ordering::Release);
            });
        if let Err(error) = spawned {
            client.is_learning.store(false, Ordering::Release);
            tracing::warn!(%error, "the topic's partitions could not be asked for");
        }
    }

    /// Waits until nothing is outstanding, or the bound passes.
    pub async fn flush(&self, bound: Duration) -> Result<(), Error> {
        let client = self.client();
        let flushed = tokio::task::spawn_blocking(move || client.inner.flush(bound)).await;
        match flushed {
            Ok(Ok(())) => Ok(()),
            Ok(Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut))) => Err(Error::TimedOut {
                operation: "flush",
                bound,
            }),
            Ok(Err(error)) => Err(Error::from_kafka("flush", error)),
            Err(error) => Err(Error::Thread {
                name: "flush",
                reason: error.to_string(),
            }),
        }
    }

    fn client(&self) -> Arc<Client> {
        Arc::clone(&self.shared.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn refused(
        &self,
        client: &Arc<Client>,
        error: &KafkaError,
        partition: i32,
        bytes: usize,
    ) -> PublishError {
        let effect = Effect::CertainlyNot;
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::UnknownPartition) => PublishError::NoPartition { partition },
            Some(RDKafkaErrorCode::QueueFull) => {
                metrics::counter!("wakelog_stream_queue_full_total").increment(1);
                PublishError::QueueFull {
                    limit_bytes: self.shared.limit_bytes,
                }
            }
            Some(RDKafkaErrorCode::MessageSizeTooLarge) => PublishError::TooLarge { bytes },
            Some(RDKafkaErrorCode::Fatal) => {
                let reason = client.fatal_reason();
                self.replace(client, &reason);
                PublishError::Fatal { reason, effect }
            }
            _ => PublishError::Failed {
                reason: error.to_string(),
                effect,
            },
        }
    }

    /// Puts a new client in the place of one that failed for good: librdkafka refuses everything from then on.
    fn replace(&self, failed: &Arc<Client>, reason: &str) {
        let mut current = self
            .shared
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&current, failed) || failed.made_at.elapsed() < MIN_CLIENT_AGE {
            return;
        }
        metrics::counter!("wakelog_stream_producer_replaced_total").increment(1);
        match Client::new(&self.shared.config) {
            Ok(client) => {
                tracing::error!(reason, "producer client failed for good, it is replaced");
                drop_aside(std::mem::replace(&mut *current, Arc::new(client)));
            }
            Err(error) => tracing::error!(reason, %error, "producer client can't be replaced"),
        }
    }
}

/// "It happened, and nobody knows": the record is sent, its outcome is not told.
fn is_outcome_hidden() -> bool {
    fail::fail_point!("stream::publish_after", |_| true);
    false
}

/// Dropping a client waits for its thread and for the reports of what it still held.
fn drop_aside(client: Arc<Client>) {
    let spawned = std::thread::Builder::new()
        .name("producer-drop".to_owned())
        .spawn(move || drop(client));
    if let Err(error) = spawned {
        tracing::warn!(%error, "producer client is dropped in place");
    }
}

impl Client {
    fn new(config: &ClientConfig) -> Result<Self, Error> {
        let inner = config
            .create_with_context(DeliveryContext)
            .map_err(|error| Error::from_kafka("create producer", error))?;
        Ok(Self {
            inner,
            made_at: Instant::now(),
            is_learning: AtomicBool::new(false),
        })
    }

    /// An answer about the topic is taken over by the client.
    fn learn(&self, topic: &str, bound: Duration) -> Result<(), Error> {
        self.inner
            .client()
            .fetch_metadata(Some(topic), bound)
            .map(drop)
            .map_err(|error| Error::from_kafka("fetch metadata", error))
    }

    fn fatal_reason(&self) -> String {
        match self.inner.client().fatal_error() {
            Some((code, reason)) => format!("{code}: {reason}"),
            None => "fatal error".to_owned(),
        }
    }
}

struct DeliveryContext;

struct Report {
    sender: oneshot::Sender<Result<i64, PublishError>>,
    bytes: usize,
}

impl ClientContext for DeliveryContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        context::log_line(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        context::log_error(&error, reason);
    }
}

impl ProducerContext for DeliveryContext {
    type DeliveryOpaque = Box<Report>;

    fn delivery(&self, result: &DeliveryResult<'_>, report: Box<Report>) {
        let outcome = match result {
            Ok(message) if message.offset() >= 0 => Ok(message.offset()),
            // A retry met its first attempt in the log, and the broker does not remember where that is.
            Ok(_) => Err(unknown(
                "the log has it, but the broker does not say at which offset",
            )),
            Err((error, message)) => Err(undelivered(error, message.partition(), report.bytes)),
        };
        if let Err(error) = &outcome {
            count(error);
        }
        // Nobody waits for it any more: that is the caller's choice.
        report.sender.send(outcome).ok();
    }
}

/// Only what is known to have never left this process is certain. A broker's refusal is not: it may answer a
/// retry of a request that had succeeded.
fn undelivered(error: &KafkaError, partition: i32, bytes: usize) -> PublishError {
    let reason = error.to_string();
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::MessageSizeTooLarge) => PublishError::TooLarge { bytes },
        Some(RDKafkaErrorCode::Fatal) => PublishError::Fatal {
            reason,
            effect: Effect::Unknown,
        },
        Some(RDKafkaErrorCode::UnknownPartition) => PublishError::NoPartition { partition },
        Some(RDKafkaErrorCode::PurgeQueue | RDKafkaErrorCode::UnknownTopic) => PublishError::Failed {
            reason,
            effect: Effect::CertainlyNot,
        },
        _ => PublishError::Failed {
            reason,
            effect: Effect::Unknown,
        },
    }
}

fn count(error: &PublishError) {
    metrics::counter!("wakelog_stream_publish_errors_total", "kind" => error.kind()).increment(1);
}

/// Resolves to the offset of a published record, or to what went wrong. Bounded by the message time-out.
#[must_use = "a publish is acknowledged by its delivery only"]
#[derive(Debug)]
pub struct Delivery {
    state: DeliveryState,
}

#[derive(Debug)]
enum DeliveryState {
    Waiting(oneshot::Receiver<Result<i64, PublishError>>),
    Hidden {
        outcome: Option<oneshot::Receiver<Result<i64, PublishError>>>,
        reason: &'static str,
    },
}

impl Delivery {
    #[cfg_attr(not(feature = "failpoints"), allow(dead_code))]
    fn failed(reason: &'static str) -> Self {
        Self {
            state: DeliveryState::Hidden {
                outcome: None,
                reason,
            },
        }
    }

    fn with_hidden_outcome(self, reason: &'static str) -> Self {
        match self.state {
            DeliveryState::Waiting(outcome) => Self {
                state: DeliveryState::Hidden {
                    outcome: Some(outcome),
                    reason,
                },
            },
            hidden => Self { state: hidden },
        }
    }
}

impl Future for Delivery {
    type Output = Result<i64, PublishError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.state {
            DeliveryState::Waiting(outcome) => outcome.poll_unpin(context).map(|outcome| {
                outcome.unwrap_or_else(|_| Err(unknown("the producer went away before it reported")))
            }),
            DeliveryState::Hidden { outcome, reason } => {
                let reported = match outcome {
                    Some(outcome) => outcome.poll_unpin(context).map(drop),
                    None => Poll::Ready(()),
                };
                reported.map(|()| Err(unknown(reason)))
            }
        }
    }
}

fn unknown(reason: &str) -> PublishError {
    PublishError::Failed {
        reason: reason.to_owned(),
        effect: Effect::Unknown,
    }
}
