//! Watermarks and replays, without a consumer group.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio::sync::{Semaphore, mpsc};

use crate::config;
use crate::context::{QuietContext, RememberingContext, Trouble};
use crate::error::Error;
use crate::options::Options;
use crate::record::{Budget, Record};
use crate::retry::{RetryPolicy, retry};

/// How many requests of one reader are under way at a time; each has a thread while it is.
const CONCURRENT_REQUESTS: usize = 32;

/// Records and bytes that a range holds for its reader.
const RANGE_RECORDS: usize = 1024;
const RANGE_BYTES: usize = 8 << 20;

/// How long one poll of a range may wait.
const POLL: Duration = Duration::from_millis(100);

/// How long the leader of a partition is looked for. Well below what a partition owner may take in a rebalance.
const LEADER_WAIT: Duration = Duration::from_secs(2);

/// How often a range looks whether its reader has made room.
const ROOM_CHECK: Duration = Duration::from_millis(2);

/// How long to listen to what a client has to say after a call has failed.
const LAST_WORDS: Duration = Duration::from_millis(20);

/// Where a partition begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    /// The first offset in the log.
    pub low: i64,
    /// The offset that the next record will get.
    pub high: i64,
}

/// Reads the log without a consumer group. Clones share one client.
#[derive(Clone)]
pub struct LogReader {
    shared: Arc<Shared>,
}

struct Shared {
    metadata: Arc<BaseConsumer<RememberingContext>>,
    /// Made once it is asked for.
    group_lookup: Arc<Mutex<Option<BaseConsumer<QuietContext>>>>,
    group_config: ClientConfig,
    range_config: ClientConfig,
    topic: String,
    request_timeout: Duration,
    requests: Arc<Semaphore>,
}

impl LogReader {
    /// Makes a client. Brokers are connected to in the background; none has to be there yet.
    pub fn new(options: &Options) -> Result<Self, Error> {
        let metadata = config::metadata(options)?
            .create_with_context(RememberingContext::default())
            .map_err(|error| Error::from_kafka("create reader", error))?;
        let shared = Shared {
            metadata: Arc::new(metadata),
            group_lookup: Arc::default(),
            group_config: config::group_lookup(options)?,
            range_config: config::range_consumer(options)?,
            topic: options.topic.clone(),
            request_timeout: options.request_timeout,
            requests: Arc::new(Semaphore::new(CONCURRENT_REQUESTS)),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Where a partition begins and ends, asked from its leader. A leader that has just changed, or that this client does not
    /// know yet because the partition is new, is asked for again, for a short while.
    pub async fn watermarks(&self, partition: i32) -> Result<Watermarks, Error> {
        let ask = || {
            let shared = Arc::clone(&self.shared);
            self.request("fetch watermarks", move || {
                let (client, topic, bound) = (&shared.metadata, &shared.topic, shared.request_timeout);
                let found = watermarks(client, topic, partition, bound);
                if matches!(found, Err(Error::NoPartition { .. })) {
                    // What the client knows may be older than the partition.
                    layout(client, topic, bound)?;
                    return watermarks(client, topic, partition, bound);
                }
                found
            })
        };
        retry(RetryPolicy::within(LEADER_WAIT), Error::is_about_the_leader, ask).await
    }

    /// How many partitions the topic has now.
    pub async fn partition_count(&self) -> Result<i32, Error> {
        self.layout().await.map(|layout| layout.partitions)
    }

    /// How the topic is spread over the cluster now.
    pub(crate) async fn layout(&self) -> Result<Layout, Error> {
        let shared = Arc::clone(&self.shared);
        self.request("fetch metadata", move || {
            layout(&shared.metadata, &shared.topic, shared.request_timeout)
        })
        .await
    }

    /// The offset that the group has committed of a partition, with [`GroupConsumer::committed`]; `None` if it has none. It
    /// may be behind what the group's members have done, and the brokers forget it some time after the last member has left.
    ///
    /// [`GroupConsumer::committed`]: crate::GroupConsumer::committed
    pub async fn committed(&self, partition: i32) -> Result<Option<i64>, Error> {
        let shared = Arc::clone(&self.shared);
        self.request("fetch the committed offset", move || {
            let mut client = shared.group_lookup.lock().unwrap_or_else(PoisonError::into_inner);
            let client = match &mut *client {
                Some(client) => client,
                none => none.insert(group_lookup(&shared.group_config)?),
            };
            committed(client, &shared.topic, partition, shared.request_timeout)
        })
        .await
    }

    /// The record at an offset; `None` if the log does not reach there, or not any more.
    pub async fn record_at(&self, partition: i32, offset: i64) -> Result<Option<Record>, Error> {
        let Watermarks { low, high } = self.watermarks(partition).await?;
        if offset < low || offset >= high {
            return Ok(None);
        }
        match self.read_range(partition, offset, offset + 1).recv().await {
            None | Some(Err(Error::OffsetGap { .. } | Error::OffsetOutOfRange { .. })) => Ok(None),
            Some(outcome) => outcome.map(Some),
        }
    }

    /// Reads the records `[from, to)` of a partition on a thread of its own, in order and without a gap. The channel
    /// closes after the last one, or after an error. Records that are not written yet are waited for, within a bound.
    pub fn read_range(&self, partition: i32, from: i64, to: i64) -> mpsc::Receiver<Result<Record, Error>> {
        let (sender, receiver) = mpsc::channel(RANGE_RECORDS);
        let range = Range {
            config: self.shared.range_config.clone(),
            topic: self.shared.topic.clone(),
            partition,
            next: from,
            to,
            request_timeout: self.shared.request_timeout,
            budget: Budget::new(RANGE_BYTES),
            sender: sender.clone(),
        };
        let spawned = std::thread::Builder::new()
            .name("log-range".to_owned())
            .spawn(move || range.run());
        if let Err(error) = spawned {
            let error = Error::Thread {
                name: "log-range",
                reason: error.to_string(),
            };
            sender.try_send(Err(error)).ok();
        }
        receiver
    }

    async fn request<T: Send + 'static>(
        &self,
        operation: &'static str,
        ask: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let bound = self.shared.request_timeout;
        let turn = Arc::clone(&self.shared.requests).acquire_owned();
        let Ok(Ok(turn)) = tokio::time::timeout(bound, turn).await else {
            return Err(Error::TimedOut { operation, bound });
        };
        let metadata = Arc::clone(&self.shared.metadata);
        let asked = tokio::task::spawn_blocking(move || {
            // Nobody polls this client for records, so what it has to say would pile up.
            while metadata.poll(Duration::ZERO).is_some() {}
            metadata.context().take();
            let mut answer = ask();
            if let Err(error) = &mut answer {
                // What it logs comes first, and ends a poll that does not wait.
                while metadata.poll(LAST_WORDS).is_some() {}
                if let Some(trouble) = metadata.context().take() {
                    tell_more(error, trouble);
                }
            }
            drop(turn);
            answer
        });
        asked.await.unwrap_or_else(|error| {
            Err(Error::Thread {
                name: operation,
                reason: error.to_string(),
            })
        })
    }
}

pub(crate) fn watermarks<C: rdkafka::consumer::ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topic: &str,
    partition: i32,
    bound: Duration,
) -> Result<Watermarks, Error> {
    match consumer.fetch_watermarks(topic, partition, bound) {
        Ok((low, high)) => Ok(Watermarks { low, high }),
        Err(error) => Err(match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownTopicOrPartition) => {
                Error::NoTopic {
                    topic: topic.to_owned(),
                }
            }
            Some(RDKafkaErrorCode::UnknownPartition) => Error::NoPartition {
                topic: topic.to_owned(),
                partition,
            },
            _ => Error::from_kafka("fetch watermarks", error),
        }),
    }
}

fn group_lookup(config: &ClientConfig) -> Result<BaseConsumer<QuietContext>, Error> {
    config
        .create_with_context(QuietContext)
        .map_err(|error| Error::from_kafka("create group client", error))
}

fn committed(
    client: &BaseConsumer<QuietContext>,
    topic: &str,
    partition: i32,
    bound: Duration,
) -> Result<Option<i64>, Error> {
    while client.poll(Duration::ZERO).is_some() {}
    let mut asked = TopicPartitionList::with_capacity(1);
    asked.add_partition(topic, partition);
    let answer = client
        .committed_offsets(asked, bound)
        .map_err(|error| Error::from_kafka("fetch the committed offset", error))?;
    let found = answer.find_partition(topic, partition);
    Ok(found.and_then(|found| match found.offset() {
        Offset::Offset(offset) => Some(offset),
        _ => None,
    }))
}

/// The call says only that no broker answered; the client has said why.
fn tell_more(error: &mut Error, trouble: Trouble) {
    let Error::Unreachable { reason, .. } = error else {
        return;
    };
    match trouble.code {
        RDKafkaErrorCode::Authentication
        | RDKafkaErrorCode::SaslAuthenticationFailed
        | RDKafkaErrorCode::UnsupportedSASLMechanism
        | RDKafkaErrorCode::IllegalSASLState => {
            *error = Error::Refused {
                reason: trouble.reason,
            };
        }
        _ => *reason = trouble.reason,
    }
}

/// How a topic is spread over its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) partitions: i32,
    /// Of the partition that has the fewest.
    pub(crate) replicas: i32,
    pub(crate) brokers: usize,
}

fn layout(
    consumer: &BaseConsumer<RememberingContext>,
    topic: &str,
    bound: Duration,
) -> Result<Layout, Error> {
    let operation = "fetch metadata";
    let metadata = consumer
        .fetch_metadata(Some(topic), bound)
        .map_err(|error| Error::from_kafka(operation, error))?;
    let missing = || Error::NoTopic {
        topic: topic.to_owned(),
    };
    let found = metadata
        .topics()
        .iter()
        .find(|found| found.name() == topic)
        .ok_or_else(missing)?;
    match found.error().map(RDKafkaErrorCode::from) {
        None => {}
        Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => {
            return Err(missing());
        }
        Some(code) => return Err(Error::from_code(operation, code)),
    }
    let replicas = found.partitions().iter().map(|found| found.replicas().len());
    match i32::try_from(found.partitions().len()) {
        Ok(0) | Err(_) => Err(missing()),
        Ok(partitions) => Ok(Layout {
            partitions,
            replicas: replicas
                .min()
                .and_then(|fewest| fewest.try_into().ok())
                .unwrap_or(0),
            brokers: metadata.brokers().len(),
        }),
    }
}

struct Range {
    config: ClientConfig,
    topic: String,
    partition: i32,
    next: i64,
    to: i64,
    request_timeout: Duration,
    budget: Budget,
    sender: mpsc::Sender<Result<Record, Error>>,
}

/// Nobody reads the range any more.
struct Abandoned;

impl Range {
    fn run(mut self) {
        if let Err(error) = self.read() {
            self.send(Err(error)).ok();
        }
    }

    fn read(&mut self) -> Result<(), Error> {
        if self.next >= self.to {
            return Ok(());
        }
        let consumer = self.assigned_consumer()?;
        let share = self.budget.share();
        let bound = self.request_timeout * 3;
        let mut last_arrival = Instant::now();
        while self.next < self.to {
            let message = match consumer.poll(POLL) {
                Some(Ok(message)) => message,
                Some(Err(error)) => {
                    self.judge(&consumer, error)?;
                    continue;
                }
                None if self.sender.is_closed() => return Ok(()),
                None if last_arrival.elapsed() > bound => {
                    return Err(Error::Stalled {
                        partition: self.partition,
                        offset: self.next,
                        waited: last_arrival.elapsed(),
                    });
                }
                None => continue,
            };
            let record = Record::copied_from(&message);
            if record.offset < self.next {
                continue;
            }
            if record.offset > self.next {
                return Err(Error::OffsetGap {
                    partition: self.partition,
                    expected: self.next,
                    found: record.offset,
                });
            }
            self.next += 1;
            let charge = loop {
                match share.try_charge(record.cost()) {
                    Some(charge) => break charge,
                    None if self.sender.is_closed() => return Ok(()),
                    None => std::thread::sleep(ROOM_CHECK),
                }
            };
            if self.send(Ok(record.charged(charge))).is_err() {
                return Ok(());
            }
            last_arrival = Instant::now();
        }
        Ok(())
    }

    fn assigned_consumer(&self) -> Result<BaseConsumer<QuietContext>, Error> {
        let operation = "read range";
        let consumer: BaseConsumer<QuietContext> = self
            .config
            .create_with_context(QuietContext)
            .map_err(|error| Error::from_kafka(operation, error))?;
        // Asked first, because not every broker refuses a fetch outside of the log.
        let Watermarks { low, high } =
            watermarks(&consumer, &self.topic, self.partition, self.request_timeout)?;
        if self.next < low || self.next > high {
            return Err(self.out_of_range(low, high));
        }
        let mut assignment = TopicPartitionList::new();
        assignment
            .add_partition_offset(&self.topic, self.partition, Offset::Offset(self.next))
            .and_then(|()| consumer.assign(&assignment))
            .map_err(|error| Error::from_kafka(operation, error))?;
        Ok(consumer)
    }

    /// Lets pass what the client gets over by itself; the bound on silence is its end.
    fn judge(&self, consumer: &BaseConsumer<QuietContext>, error: KafkaError) -> Result<(), Error> {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => {
                let Watermarks { low, high } =
                    watermarks(consumer, &self.topic, self.partition, self.request_timeout)?;
                Err(self.out_of_range(low, high))
            }
            Some(RDKafkaErrorCode::TopicAuthorizationFailed | RDKafkaErrorCode::SaslAuthenticationFailed) => {
                Err(Error::from_kafka("read range", error))
            }
            _ if matches!(error, KafkaError::MessageConsumptionFatal(_)) => {
                Err(Error::from_kafka("read range", error))
            }
            _ => Ok(()),
        }
    }

    fn out_of_range(&self, low: i64, high: i64) -> Error {
        Error::OffsetOutOfRange {
            partition: self.partition,
            offset: self.next,
            low,
            high,
        }
    }

    /// A slow reader is waited for as long as it is there.
    fn send(&self, item: Result<Record, Error>) -> Result<(), Abandoned> {
        self.sender.blocking_send(item).map_err(|_| Abandoned)
    }
}
