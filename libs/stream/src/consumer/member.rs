//! The poll thread: one membership of the group after another, and when to give up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::rebalance::{GroupContext, Shared};
use super::slot::Offer;
use super::{ConsumerEvent, Control, PartitionOwner, locked};
use crate::config;
use crate::error::Error;
use crate::options::Options;
use crate::reader::{Watermarks, watermarks};
use crate::record::{Budget, Record};
use crate::retry::RetryPolicy;

/// How long one poll may wait. While a partition is paused it is shorter, because that is also how long it takes to
/// see that there is room again.
const POLL: Duration = Duration::from_millis(100);
const POLL_WHILE_PAUSED: Duration = Duration::from_millis(5);

/// How long a full partition is waited for before it is paused, and how often it is looked at meanwhile.
const ROOM_WAIT: Duration = Duration::from_millis(100);
const ROOM_CHECK: Duration = Duration::from_millis(1);

/// How often paused partitions are looked at while records of others arrive.
const TICK: Duration = Duration::from_millis(5);

/// How often offsets are committed, at most.
const COMMIT_INTERVAL: Duration = Duration::from_secs(2);

/// How often the pause between two memberships looks for a stop.
const STOP_CHECK: Duration = Duration::from_millis(20);

pub(super) struct Member {
    config: ClientConfig,
    shared: Arc<Shared>,
    rejoin: RetryPolicy,
    session_timeout: Duration,
}

/// How a membership ended.
enum End {
    Stopped,
    Rejoin(Error),
}

impl Member {
    pub(super) fn new(
        options: &Options,
        owner: Arc<dyn PartitionOwner>,
        runtime: Handle,
        events: mpsc::Sender<ConsumerEvent>,
        control: Arc<Control>,
    ) -> Result<Self, Error> {
        let shared = Shared {
            topic: options.topic.clone(),
            control,
            slots: Mutex::default(),
            failure: Mutex::default(),
            owner,
            runtime,
            events,
            budget: Budget::new(options.consumer_buffer_bytes),
            queue_records: options.consumer_queue_records,
            owner_bound: options.session_timeout / 2,
        };
        let rejoin = RetryPolicy {
            initial: Duration::from_millis(500),
            max_interval: Duration::from_secs(10),
            max_elapsed: Duration::from_secs(24 * 3600),
            max_attempts: options.rejoin_limit,
            ..RetryPolicy::default()
        };
        let config = config::group_consumer(options)?;
        Ok(Self {
            config,
            shared: Arc::new(shared),
            rejoin,
            session_timeout: options.session_timeout,
        })
    }

    pub(super) fn run(self) {
        let mut waits = self.rejoin.waits();
        let mut attempts = 0;
        loop {
            let joined_at = Instant::now();
            let error = match self.membership() {
                End::Stopped => return,
                End::Rejoin(error) => error,
            };
            if joined_at.elapsed() > self.session_timeout * 6 {
                waits = self.rejoin.waits();
                attempts = 0;
            }
            attempts += 1;
            metrics::counter!("wakelog_stream_rejoins_total").increment(1);
            let Some(wait) = waits.next() else {
                tracing::error!(topic = self.shared.topic, attempts, %error, "consumer gives up");
                let last = error.to_string();
                self.shared
                    .emit(ConsumerEvent::Fatal(Error::RejoinLimit { attempts, last }));
                return;
            };
            tracing::warn!(topic = self.shared.topic, ?wait, %error, "left the group, joining again");
            if self.stopped_within(wait) {
                return;
            }
        }
    }

    fn stopped_within(&self, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        while Instant::now() < until {
            if self.shared.control.is_stopped() {
                return true;
            }
            std::thread::sleep(STOP_CHECK);
        }
        self.shared.control.is_stopped()
    }

    fn membership(&self) -> End {
        // Asked for during the pause: joining anew is what was wanted.
        locked(&self.shared.control.rejoin).take();
        let context = GroupContext {
            shared: Arc::clone(&self.shared),
        };
        let consumer: BaseConsumer<GroupContext> = match self.config.create_with_context(context) {
            Ok(consumer) => consumer,
            Err(error) => return End::Rejoin(Error::from_kafka("create consumer", error)),
        };
        let end = match consumer.subscribe(&[&self.shared.topic]) {
            Ok(()) => Session {
                shared: &self.shared,
                consumer: &consumer,
                last_commit: None,
            }
            .poll_until_end(),
            Err(error) => End::Rejoin(Error::from_kafka("subscribe", error)),
        };
        // Leaves the group; the callbacks that revoke what is assigned run on this thread, within the drop.
        drop(consumer);
        let left = locked(&self.shared.slots).keys().copied().collect::<Vec<_>>();
        self.shared.revoke(&left, true);
        locked(&self.shared.failure).take();
        end
    }
}

/// One membership while it is polled.
struct Session<'a> {
    shared: &'a Shared,
    consumer: &'a BaseConsumer<GroupContext>,
    last_commit: Option<Instant>,
}

impl Session<'_> {
    fn poll_until_end(&mut self) -> End {
        let end = self.poll_loop();
        self.commit();
        end
    }

    fn poll_loop(&mut self) -> End {
        let mut last_tick = Instant::now();
        let mut any_paused = false;
        loop {
            if self.shared.control.is_stopped() {
                return End::Stopped;
            }
            if let Some(error) = locked(&self.shared.failure).take() {
                return End::Rejoin(error);
            }
            let polled = self
                .consumer
                .poll(if any_paused { POLL_WHILE_PAUSED } else { POLL });
            let outcome = match polled {
                None => Ok(false),
                Some(Ok(message)) => self.accept(Record::copied_from(&message)),
                Some(Err(error)) => self.judge(error).map(|()| false),
            };
            match outcome {
                Ok(paused) => any_paused |= paused,
                Err(error) => return End::Rejoin(error),
            }
            if last_tick.elapsed() < TICK {
                continue;
            }
            last_tick = Instant::now();
            match self.tick() {
                Ok(paused) => any_paused = paused,
                Err(error) => return End::Rejoin(error),
            }
        }
    }

    /// Whether its partition is paused now.
    fn accept(&self, record: Record) -> Result<bool, Error> {
        let partition = record.partition;
        let offer = match locked(&self.shared.slots).get_mut(&partition) {
            Some(slot) => slot.offer(record),
            // The owner refused it, and the group is about to be left.
            None => return Ok(false),
        };
        match offer {
            Offer::Taken => Ok(false),
            Offer::Full if self.gets_room(partition) => Ok(false),
            Offer::Full => {
                if let Some(slot) = locked(&self.shared.slots).get_mut(&partition) {
                    slot.pause();
                }
                self.pause(partition).map(|()| true)
            }
            Offer::Stopped => self.pause(partition).map(|()| false),
            Offer::Gap(error) => {
                tracing::error!(topic = self.shared.topic, partition, %error, "partition stopped");
                self.pause(partition)?;
                self.shared
                    .emit(ConsumerEvent::PartitionError { partition, error });
                Ok(false)
            }
            // The record is not lost: owners say again where to start.
            Offer::NotPaused => Err(Error::from_code("pause", RDKafkaErrorCode::State)),
        }
    }

    /// Waits a moment for a full partition to get room: usually its worker is just about to take the next batch, and a
    /// pause would cost far more than the wait. The bound is what one slow partition may cost the others before it is
    /// paused.
    fn gets_room(&self, partition: i32) -> bool {
        let until = Instant::now() + ROOM_WAIT;
        loop {
            let is_stashed = locked(&self.shared.slots)
                .get_mut(&partition)
                .is_some_and(|slot| !slot.unstash());
            if !is_stashed {
                return true;
            }
            if Instant::now() >= until || self.shared.control.is_stopped() {
                return false;
            }
            std::thread::sleep(ROOM_CHECK);
        }
    }

    /// A pause drops what the client has fetched ahead of the last record that it handed over; a resume fetches from
    /// there again.
    fn pause(&self, partition: i32) -> Result<(), Error> {
        self.consumer
            .pause(&self.partitions(&[partition]))
            .map_err(|error| Error::from_kafka("pause", error))
    }

    /// Looks after paused partitions, requests and commits; whether a partition is paused.
    fn tick(&mut self) -> Result<bool, Error> {
        if let Some(reason) = locked(&self.shared.control.rejoin).take() {
            return Err(Error::RejoinAsked { reason });
        }
        let mut any_paused = false;
        let mut resumable = Vec::new();
        for slot in locked(&self.shared.slots).values_mut() {
            if slot.relieve() {
                resumable.push(slot.partition);
            }
            any_paused |= slot.is_paused();
        }
        if !resumable.is_empty() {
            self.consumer
                .resume(&self.partitions(&resumable))
                .map_err(|error| Error::from_kafka("resume", error))?;
        }
        if self
            .last_commit
            .is_none_or(|last| last.elapsed() >= COMMIT_INTERVAL)
        {
            self.commit();
        }
        Ok(any_paused)
    }

    fn commit(&mut self) {
        let commits = std::mem::take(&mut *locked(&self.shared.control.commits));
        let owned = {
            let slots = locked(&self.shared.slots);
            commits
                .into_iter()
                .filter(|(partition, _)| slots.contains_key(partition))
                .collect::<BTreeMap<_, _>>()
        };
        if owned.is_empty() {
            return;
        }
        self.last_commit = Some(Instant::now());
        let mut offsets = TopicPartitionList::with_capacity(owned.len());
        let added = owned.into_iter().try_for_each(|(partition, next_offset)| {
            offsets.add_partition_offset(&self.shared.topic, partition, Offset::Offset(next_offset))
        });
        if let Err(error) = added.and_then(|()| self.consumer.commit(&offsets, CommitMode::Async)) {
            tracing::debug!(%error, "courtesy commit failed");
        }
    }

    fn judge(&self, error: KafkaError) -> Result<(), Error> {
        let fatal = matches!(error, KafkaError::MessageConsumptionFatal(_));
        match error.rdkafka_error_code() {
            _ if fatal => Err(Error::from_kafka("consume", error)),
            Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => {
                self.out_of_range()
            }
            Some(
                RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::GroupAuthorizationFailed
                | RDKafkaErrorCode::SaslAuthenticationFailed,
            ) => Err(Error::from_kafka("consume", error)),
            Some(RDKafkaErrorCode::PollExceeded) => {
                tracing::error!(
                    topic = self.shared.topic,
                    "poll thread was away too long, the group has left us"
                );
                metrics::counter!("wakelog_stream_poll_exceeded_total").increment(1);
                Ok(())
            }
            // The client gets over these by itself; it has logged and counted them.
            _ => Ok(()),
        }
    }

    /// The client does not say which partition it is about, so all that still run are asked.
    fn out_of_range(&self) -> Result<(), Error> {
        let running = locked(&self.shared.slots)
            .values()
            .filter(|slot| !slot.is_stopped())
            .map(|slot| (slot.partition, slot.expected()))
            .collect::<Vec<_>>();
        let bound = self.shared.owner_bound;
        let mut found = false;
        for (partition, offset) in running {
            let Watermarks { low, high } = watermarks(self.consumer, &self.shared.topic, partition, bound)?;
            if (low..=high).contains(&offset) {
                continue;
            }
            found = true;
            if let Some(slot) = locked(&self.shared.slots).get_mut(&partition) {
                slot.stop();
            }
            let error = Error::OffsetOutOfRange {
                partition,
                offset,
                low,
                high,
            };
            tracing::error!(topic = self.shared.topic, partition, %error, "partition stopped");
            self.shared
                .emit(ConsumerEvent::PartitionError { partition, error });
        }
        if found {
            return Ok(());
        }
        // A partition of ours has stopped and it is not known which: start all of them again.
        Err(Error::from_code(
            "find the partition that is out of range",
            RDKafkaErrorCode::AutoOffsetReset,
        ))
    }

    fn partitions(&self, partitions: &[i32]) -> TopicPartitionList {
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions {
            list.add_partition(&self.shared.topic, *partition);
        }
        list
    }
}
