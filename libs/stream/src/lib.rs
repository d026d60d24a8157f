//! The log: Wakelog's Kafka side, over librdkafka.
//!
//! | module | decision |
//! |---|---|
//! | [`options`] | what a service may choose about its broker clients; everything else is fixed in `config` |
//! | [`topic`] | how the topic is created and what is known of it |
//! | `flaws` | which settings of the topic weaken a guarantee, and which break it |
//! | `greeting` | what listens at the brokers' addresses |
//! | [`producer`] | publishing in call order, and what a failed publish says about the log |
//! | [`reader`] | watermarks and replays, without a consumer group |
//! | [`consumer`] | the group consumer: the owner of a partition names its start offset, back-pressure per partition |
//! | [`record`] | a record as read, and the byte budget it is charged to |
//! | [`retry`] | backoff with an end, the only place that knows the backoff crate |
//! | [`error`] | what can go wrong, and whether it may have had an effect |
//!
//! Offsets that the brokers keep for a group are a courtesy to lag tools. Where a consumer starts is always said by
//! a [`PartitionOwner`], and a hole in the log is reported and never skipped.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod config;
mod context;
mod flaws;
mod greeting;

pub mod consumer;
pub mod error;
pub mod options;
pub mod producer;
pub mod reader;
pub mod record;
pub mod retry;
pub mod topic;

pub use config::producer as producer_config;
pub use consumer::{ConsumerEvent, GroupConsumer, PartitionOwner, PartitionRecords};
pub use error::{Effect, Error, PublishError};
pub use flaws::Flaw;
pub use options::Options;
pub use producer::{Delivery, Producer};
pub use reader::{LogReader, Watermarks};
pub use record::Record;
pub use retry::{RetryPolicy, retry};
pub use topic::{TopicReport, check_creatable, describe_topic, ensure_topic};
