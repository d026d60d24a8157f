//! Publishing a record, and learning what became of it.

use std::time::Duration;

use prost::Message as _;
use wakelog_model::SessionId;
use wakelog_proto::v1::{SessionRecord, session_record::Record};
use wakelog_stream::{Effect, PublishError};

use crate::Error;
use crate::core::Core;
use crate::poll::Poll;

/// How much longer than the producer's own time-out its answer is waited for.
const DELIVERY_GRACE: Duration = Duration::from_millis(500);

/// What is known of a published record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Published {
    /// The log has it, at this offset.
    At(i64),
    /// The log may or may not have it, or has it somewhere.
    Somewhere,
}

/// What a wait for a record came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applied<T> {
    /// What was looked for was seen.
    Seen(T),
    /// The record was folded, and what was looked for is not there: it changed nothing.
    Nothing,
}

impl Core {
    /// Publishes to the session's pinned partition, within the message time-out. An error means that the record is
    /// certainly not in the log; anything less certain is no error, and what comes of it is for the wait to see.
    pub(crate) async fn publish(
        &self,
        session: SessionId,
        partition: i32,
        record: Record,
    ) -> Result<Published, Error> {
        self.publish_while(session, partition, record, || true).await
    }

    /// The same, where the record may be handed to the producer only as long as `is_in_time`.
    pub(crate) async fn publish_while(
        &self,
        session: SessionId,
        partition: i32,
        record: Record,
        is_in_time: impl Fn() -> bool,
    ) -> Result<Published, Error> {
        let value = SessionRecord { record: Some(record) }.encode_to_vec();
        match self.publish_once(session, partition, &value).await {
            // The pin says that there is such a partition: another process saw it first.
            Err(unknown @ Error::Publish(PublishError::NoPartition { .. })) => {
                if let Err(error) = self.producer.learn_partitions().await {
                    tracing::warn!(partition, %error, "a new partition could not be asked for");
                }
                match is_in_time() {
                    true => self.publish_once(session, partition, &value).await,
                    false => Err(unknown),
                }
            }
            outcome => outcome,
        }
    }

    async fn publish_once(
        &self,
        session: SessionId,
        partition: i32,
        value: &[u8],
    ) -> Result<Published, Error> {
        let delivery = match self.producer.publish(partition, &session.to_string(), value) {
            Ok(delivery) => delivery,
            Err(error) => return unless_uncertain(session, error),
        };
        match tokio::time::timeout(self.options.message_timeout + DELIVERY_GRACE, delivery).await {
            // A producer that had to ask twice may not know where its record is.
            Ok(Ok(offset)) if offset < 0 => Ok(Published::Somewhere),
            Ok(Ok(offset)) => Ok(Published::At(offset)),
            Ok(Err(error)) => unless_uncertain(session, error),
            Err(_) => {
                tracing::warn!(%session, "the log did not say in time whether it took a record");
                Ok(Published::Somewhere)
            }
        }
    }

    /// Waits until the record is folded, then looks. Where its offset is not known, looks until there is something to
    /// see. Other errors of `look` than the hot tail's end the wait.
    pub(crate) async fn wait_applied<T, F>(
        &self,
        partition: i32,
        published: Published,
        poll: &mut Poll<'_>,
        look: impl Fn() -> F,
    ) -> Result<Applied<T>, Error>
    where
        F: Future<Output = Result<Option<T>, Error>>,
    {
        if let Published::At(offset) = published {
            self.pass(partition, offset.saturating_add(1), poll).await?;
        }
        loop {
            let failure = match look().await {
                Ok(Some(seen)) => return Ok(Applied::Seen(seen)),
                Ok(None) if published != Published::Somewhere => return Ok(Applied::Nothing),
                Ok(None) => None,
                Err(error @ Error::Store(_)) => Some(error),
                Err(error) => return Err(error),
            };
            poll.pause_after(failure).await?;
        }
    }
}

fn unless_uncertain(session: SessionId, error: PublishError) -> Result<Published, Error> {
    if error.effect() == Effect::CertainlyNot {
        return Err(Error::Publish(error));
    }
    tracing::warn!(%session, %error, "it is not known whether the log took a record");
    Ok(Published::Somewhere)
}
