//! What can go wrong with the log, and whether it may have had an effect.

use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// Whether a failed operation may have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It did not happen and will not.
    CertainlyNot,
    /// It may have happened, or may still happen.
    Unknown,
}

/// What can go wrong with the log, except for a publish.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A client could not be made from the options. Never says the value, which may be a secret.
    #[error("broker client option {key:?} is not accepted: {reason}")]
    Config {
        /// The name of the librdkafka setting, or of the option.
        key: String,
        /// Why it is not accepted.
        reason: String,
    },
    /// No broker answered within the bound.
    #[error("{operation}: no broker answered: {reason}")]
    Unreachable {
        /// What was asked.
        operation: &'static str,
        /// What the client said.
        reason: String,
    },
    /// A broker answers and does not let this client in.
    #[error("the broker refuses this client: {reason}")]
    Refused {
        /// What it said.
        reason: String,
    },
    /// A broker says which requests it knows, and answers no other.
    #[error("the broker answers, and lets this client no further: {reason}")]
    Unwelcome {
        /// What the client said.
        reason: String,
    },
    /// What listens there is no broker.
    #[error("{address} is no Kafka broker: {found}")]
    NoBroker {
        /// Where.
        address: String,
        /// What was found instead.
        found: &'static str,
    },
    /// The broker lacks what is needed.
    #[error("the broker {address} is too old: it lacks {lacks}; Apache Kafka 0.11 or newer has it")]
    BrokerTooOld {
        /// Which one.
        address: String,
        /// The requests that it does not know.
        lacks: String,
    },
    /// TLS is asked for, and this build does not speak it.
    #[error("{key} is {value}, and this build speaks no TLS to brokers")]
    TlsNotBuilt {
        /// The setting.
        key: String,
        /// Its value.
        value: String,
    },
    /// The topic does not exist.
    #[error("topic {topic:?} does not exist")]
    NoTopic {
        /// The topic.
        topic: String,
    },
    /// The topic was to be created with more replicas than there are brokers.
    #[error("topic {topic:?} can't have {replication} replicas: there are not so many brokers")]
    TooFewBrokers {
        /// The topic.
        topic: String,
        /// The replicas that it was to have.
        replication: i32,
    },
    /// The partition does not exist.
    #[error("topic {topic:?} has no partition {partition}")]
    NoPartition {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
    },
    /// The offset is not in the log: retention has eaten it, or the topic was made anew.
    #[error("partition {partition}: offset {offset} is outside of the log, which has {low} up to {high}")]
    OffsetOutOfRange {
        /// The partition.
        partition: i32,
        /// The offset that was asked for.
        offset: i64,
        /// The first offset in the log.
        low: i64,
        /// The offset that the next record will get.
        high: i64,
    },
    /// The log went on with a later offset than the next one. Nothing that Wakelog configures makes such a hole.
    #[error("partition {partition}: offset {expected} should be next, the log went on with {found}")]
    OffsetGap {
        /// The partition.
        partition: i32,
        /// The offset that should have come.
        expected: i64,
        /// The offset that came.
        found: i64,
    },
    /// Nothing arrived although the range is not read to its end.
    #[error("partition {partition}: nothing arrived for {waited:?} while waiting for offset {offset}")]
    Stalled {
        /// The partition.
        partition: i32,
        /// The offset that should have come.
        offset: i64,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The owner of a partition did not say where to start.
    #[error("partition {partition}: its owner did not take it: {reason}")]
    OwnerRefused {
        /// The partition.
        partition: i32,
        /// What the owner said, or that it was too late.
        reason: String,
    },
    /// The group was left because its user asked for it.
    #[error("left the group: {reason}")]
    RejoinAsked {
        /// What the user gave as the reason.
        reason: String,
    },
    /// The group was left and joined again too often in a row.
    #[error(
        "gave up after leaving and joining the group {attempts} times in a row, the last time because: {last}"
    )]
    RejoinLimit {
        /// How many times.
        attempts: u32,
        /// What the last one failed with.
        last: String,
    },
    /// A bound passed before the work was done; it goes on in the background.
    #[error("{operation} was not done within {bound:?}")]
    TimedOut {
        /// What was waited for.
        operation: &'static str,
        /// How long.
        bound: Duration,
    },
    /// It needs a tokio runtime and there is none.
    #[error("{operation} must be called within a tokio runtime")]
    NoRuntime {
        /// What was called.
        operation: &'static str,
    },
    /// A thread could not be started, or it died.
    #[error("thread {name:?}: {reason}")]
    Thread {
        /// The name of the thread.
        name: &'static str,
        /// What happened.
        reason: String,
    },
    /// Anything else that a broker or the client library says.
    #[error("{operation}: {source}")]
    Kafka {
        /// What was asked.
        operation: &'static str,
        /// What was said.
        source: KafkaError,
    },
}

impl Error {
    /// Whether the same call may well succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::TimedOut { .. } | Error::Stalled { .. } => true,
            Error::Kafka { source, .. } => source.rdkafka_error_code().is_some_and(is_transient_code),
            _ => false,
        }
    }

    /// True if the broker that was asked does not lead the partition: the client's metadata is old.
    pub(crate) fn is_about_the_leader(&self) -> bool {
        let Error::Kafka { source, .. } = self else {
            return false;
        };
        matches!(
            source.rdkafka_error_code(),
            Some(RDKafkaErrorCode::NotLeaderForPartition | RDKafkaErrorCode::LeaderNotAvailable)
        )
    }

    /// Whether a broker client could not reach any broker.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Error::Unreachable { .. })
    }

    pub(crate) fn from_kafka(operation: &'static str, source: KafkaError) -> Self {
        if let KafkaError::ClientConfig(_, reason, key, _) = source {
            return Error::Config { key, reason };
        }
        if let KafkaError::ClientCreation(reason) = source {
            return Error::Config {
                key: operation.to_owned(),
                reason,
            };
        }
        match source.rdkafka_error_code() {
            Some(code) if is_unreachable_code(code) => Error::Unreachable {
                operation,
                reason: code.to_string(),
            },
            _ => Error::Kafka { operation, source },
        }
    }

    pub(crate) fn from_code(operation: &'static str, code: RDKafkaErrorCode) -> Self {
        Error::from_kafka(operation, KafkaError::Global(code))
    }
}

pub(crate) fn is_unreachable_code(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::BrokerTransportFailure
            | RDKafkaErrorCode::AllBrokersDown
            | RDKafkaErrorCode::Resolve
            | RDKafkaErrorCode::OperationTimedOut
            | RDKafkaErrorCode::TimedOutQueue
            | RDKafkaErrorCode::NetworkException
            | RDKafkaErrorCode::UnknownBroker
    )
}

fn is_transient_code(code: RDKafkaErrorCode) -> bool {
    is_unreachable_code(code)
        || matches!(
            code,
            RDKafkaErrorCode::LeaderNotAvailable
                | RDKafkaErrorCode::NotLeaderForPartition
                | RDKafkaErrorCode::RequestTimedOut
                | RDKafkaErrorCode::BrokerNotAvailable
                | RDKafkaErrorCode::ReplicaNotAvailable
                | RDKafkaErrorCode::CoordinatorLoadInProgress
                | RDKafkaErrorCode::CoordinatorNotAvailable
                | RDKafkaErrorCode::NotCoordinator
                | RDKafkaErrorCode::NotController
                | RDKafkaErrorCode::NotEnoughReplicas
                | RDKafkaErrorCode::KafkaStorageError
                | RDKafkaErrorCode::FencedLeaderEpoch
                | RDKafkaErrorCode::UnknownLeaderEpoch
                | RDKafkaErrorCode::OffsetNotAvailable
                | RDKafkaErrorCode::ThrottlingQuotaExceeded
        )
}

/// What can go wrong with a publish.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The producer's queue is full; nothing was sent.
    #[error("the producer holds {limit_bytes} bytes that are not acknowledged yet")]
    QueueFull {
        /// The limit of the queue.
        limit_bytes: usize,
    },
    /// The record is larger than the topic takes.
    #[error("a record of {bytes} bytes is larger than the log takes")]
    TooLarge {
        /// The bytes of key and value.
        bytes: usize,
    },
    /// The producer does not know of such a partition; nothing was sent. If it was added a moment ago,
    /// [`Producer::learn_partitions`](crate::Producer::learn_partitions) makes it known.
    #[error("the producer knows of no partition {partition}")]
    NoPartition {
        /// The partition asked for.
        partition: i32,
    },
    /// The record was not acknowledged.
    #[error("publish failed: {reason}")]
    Failed {
        /// What the client or the broker said.
        reason: String,
        /// Whether it may be in the log.
        effect: Effect,
    },
    /// The client can't go on; the producer replaces it, so a later publish may succeed.
    #[error("the producer's client failed for good and is replaced: {reason}")]
    Fatal {
        /// What the client said.
        reason: String,
        /// Whether the record may be in the log.
        effect: Effect,
    },
}

impl PublishError {
    /// Whether the record may be in the log, or may still get into it.
    pub fn effect(&self) -> Effect {
        match self {
            PublishError::QueueFull { .. }
            | PublishError::TooLarge { .. }
            | PublishError::NoPartition { .. } => Effect::CertainlyNot,
            PublishError::Failed { effect, .. } | PublishError::Fatal { effect, .. } => *effect,
        }
    }

    /// A stable snake_case name for metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            PublishError::QueueFull { .. } => "queue_full",
            PublishError::TooLarge { .. } => "too_large",
            PublishError::NoPartition { .. } => "no_partition",
            PublishError::Failed {
                effect: Effect::CertainlyNot,
                ..
            } => "rejected",
            PublishError::Failed {
                effect: Effect::Unknown,
                ..
            } => "unknown",
            PublishError::Fatal { .. } => "fatal",
        }
    }
}
