//! What happens inside the rebalance callbacks. They run on the poll thread, within `poll` or within the drop of the
//! consumer; what they are given is a change of the assignment, not the whole of it.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::{Offset, TopicPartitionList};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::slot::Slot;
use super::{ConsumerEvent, Control, PartitionOwner, locked};
use crate::context;
use crate::error::Error;
use crate::record::Budget;

/// How long the user may leave its events unread before the consumer gives its partitions back.
const EVENT_BOUND: Duration = Duration::from_secs(5);
const EVENT_CHECK: Duration = Duration::from_millis(5);

/// What the poll thread and its callbacks share. Lives as long as the poll thread, so that the user sees its events
/// end with it; holds no consumer, which would make a cycle.
pub(super) struct Shared {
    pub(super) topic: String,
    pub(super) control: Arc<Control>,
    pub(super) slots: Mutex<BTreeMap<i32, Slot>>,
    /// Why the present membership has to end.
    pub(super) failure: Mutex<Option<Error>>,
    pub(super) owner: Arc<dyn PartitionOwner>,
    pub(super) runtime: Handle,
    pub(super) events: mpsc::Sender<ConsumerEvent>,
    pub(super) budget: Budget,
    pub(super) queue_records: usize,
    /// What the owner may take in one callback.
    pub(super) owner_bound: Duration,
}

impl Shared {
    /// Hands an event to the user; false if it can't be.
    pub(super) fn emit(&self, event: ConsumerEvent) -> bool {
        let deadline = Instant::now() + EVENT_BOUND;
        let mut event = event;
        loop {
            event = match self.events.try_send(event) {
                Ok(()) => return true,
                Err(TrySendError::Closed(_)) => {
                    self.control.stop();
                    return false;
                }
                Err(TrySendError::Full(event)) => event,
            };
            // Who shuts down may have stopped reading.
            if self.control.is_stopped() {
                return false;
            }
            if Instant::now() >= deadline {
                tracing::error!("consumer events are not read, the group is left");
                self.fail(Error::TimedOut {
                    operation: "handing over an event",
                    bound: EVENT_BOUND,
                });
                return false;
            }
            std::thread::sleep(EVENT_CHECK);
        }
    }

    pub(super) fn fail(&self, error: Error) {
        locked(&self.failure).get_or_insert(error);
    }

    fn assign(&self, partitions: &TopicPartitionList) {
        let asked = partitions
            .elements()
            .iter()
            .map(|element| element.partition())
            .collect::<Vec<_>>();
        let questions = asked
            .iter()
            .map(|partition| (*partition, self.owner.assigned(*partition)))
            .collect();
        let mut answers = self.ask(questions);
        for mut element in partitions.elements() {
            let partition = element.partition();
            let start = match answers.remove(&partition) {
                Some(Ok(start)) if start >= 0 => Ok(start),
                Some(Ok(start)) => Err(format!("it said offset {start}")),
                Some(Err(error)) => Err(error.to_string()),
                None => Err(format!("no answer within {:?}", self.owner_bound)),
            };
            let placed = start.and_then(|start| {
                element
                    .set_offset(Offset::Offset(start))
                    .map_err(|error| error.to_string())?;
                Ok(start)
            });
            match placed {
                Ok(start) => self.open(partition, start),
                Err(reason) => {
                    // It is given back at once; until then nothing that exists now must arrive.
                    if let Err(error) = element.set_offset(Offset::End) {
                        tracing::warn!(partition, %error, "start offset can't be set");
                    }
                    self.refuse(partition, reason);
                }
            }
        }
    }

    fn open(&self, partition: i32, start: i64) {
        let (slot, records) = Slot::new(partition, start, self.queue_records, self.budget.share());
        locked(&self.slots).insert(partition, slot);
        tracing::info!(topic = self.topic, partition, start, "partition assigned");
        self.emit(ConsumerEvent::Assigned { partition, records });
    }

    fn refuse(&self, partition: i32, reason: String) {
        tracing::error!(
            topic = self.topic,
            partition,
            reason,
            "partition owner refuses, the group is left"
        );
        let error = |reason| Error::OwnerRefused { partition, reason };
        self.fail(error(reason.clone()));
        self.emit(ConsumerEvent::PartitionError {
            partition,
            error: error(reason),
        });
    }

    /// Partitions that are not open (the owner refused them) need nothing.
    pub(super) fn revoke(&self, partitions: &[i32], lost: bool) {
        let revoked = {
            let mut slots = locked(&self.slots);
            let mut commits = locked(&self.control.commits);
            for partition in partitions {
                commits.remove(partition);
            }
            // Dropping the slot ends its records, before the owner is asked to let go.
            partitions
                .iter()
                .copied()
                .filter(|partition| slots.remove(partition).is_some())
                .collect::<Vec<_>>()
        };
        let questions = revoked
            .iter()
            .map(|partition| (*partition, self.owner.revoked(*partition, lost)))
            .collect();
        let answers = self.ask(questions);
        for partition in revoked {
            if !answers.contains_key(&partition) {
                tracing::error!(
                    topic = self.topic,
                    partition,
                    "partition owner did not let go in time, it goes on regardless"
                );
                metrics::counter!("wakelog_stream_late_revokes_total").increment(1);
            }
            tracing::info!(topic = self.topic, partition, lost, "partition revoked");
            self.emit(ConsumerEvent::Revoked { partition });
        }
    }

    /// Runs the futures at the same time on the runtime and takes the answers that come within the bound.
    fn ask<T: Send + 'static>(&self, questions: Vec<(i32, BoxFuture<'static, T>)>) -> BTreeMap<i32, T> {
        let deadline = Instant::now() + self.owner_bound;
        let (sender, receiver) = channel();
        let mut answers = BTreeMap::new();
        let count = questions.len();
        for (partition, question) in questions {
            let sender = sender.clone();
            // Never aborted: an owner that is half way through a transaction must be able to finish it.
            self.runtime
                .spawn(async move { sender.send((partition, question.await)).ok() });
        }
        drop(sender);
        while answers.len() < count {
            match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((partition, answer)) => answers.insert(partition, answer),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            };
        }
        answers
    }
}

pub(super) struct GroupContext {
    pub(super) shared: Arc<Shared>,
}

impl ClientContext for GroupContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        context::log_line(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        context::log_error(&error, reason);
    }
}

impl ConsumerContext for GroupContext {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(partitions) => {
                metrics::counter!("wakelog_stream_rebalances_total", "kind" => "assign").increment(1);
                // Cooperative members are also told when nothing is new.
                if partitions.count() > 0 {
                    self.shared.assign(partitions);
                }
            }
            Rebalance::Revoke(partitions) => {
                let lost = consumer.assignment_lost();
                let kind = if lost { "lost" } else { "revoke" };
                metrics::counter!("wakelog_stream_rebalances_total", "kind" => kind).increment(1);
                if partitions.count() > 0 {
                    let partitions = partitions
                        .elements()
                        .iter()
                        .map(|element| element.partition())
                        .collect::<Vec<_>>();
                    self.shared.revoke(&partitions, lost);
                }
            }
            Rebalance::Error(error) => {
                self.shared.fail(Error::from_kafka("rebalance", error.clone()));
            }
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        // A partition that was paused when it was last revoked may come back paused (librdkafka issue 5591).
        if let Rebalance::Assign(partitions) = rebalance
            && partitions.count() > 0
            && let Err(error) = consumer.resume(partitions)
        {
            self.shared
                .fail(Error::from_kafka("resume after assignment", error));
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, _offsets: &TopicPartitionList) {
        if let Err(error) = result {
            tracing::debug!(%error, "courtesy commit failed");
        }
    }
}
