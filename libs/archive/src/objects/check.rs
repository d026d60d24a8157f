//! Whether the bucket can be used, for whoever sets it up.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use uuid::Uuid;

use super::ObjectStore;
use super::failure::{Failure, Operation, RequestError};
use super::retry::RetryPolicy;
use crate::Error;

/// What the name of a trial object begins with.
const TRIAL_PREFIX: &str = "doctor/trial-";

/// How long it may take to find out whether the bucket is there: whoever starts waits for it.
const CHECK_BOUND: Duration = Duration::from_secs(10);

/// The same for whether it can be written to: a PUT and a DELETE, each with its retries.
const TRIAL_BOUND: Duration = Duration::from_secs(30);

/// What is known of the bucket.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BucketState {
    /// It can be used.
    Ready,
    /// There is no such bucket.
    Absent,
    /// The keys are wrong, or they do not allow it.
    Denied {
        /// What the store said.
        reason: String,
    },
    /// It takes no writes.
    ReadOnly {
        /// What the store said.
        reason: String,
    },
    /// Nobody answers, or nobody in time.
    Unreachable {
        /// What the client said.
        reason: String,
    },
}

impl ObjectStore {
    /// Asks once whether the bucket is there and may be read. Errors are what is no [`BucketState`].
    pub async fn check(&self) -> Result<BucketState, Error> {
        let asking = async {
            match self.head_bucket().await? {
                // The answer to HEAD has no body that could say what is wrong: the bucket, a key, or a right.
                BucketState::Absent | BucketState::Denied { .. } => self.list_one().await,
                other => Ok(other),
            }
        };
        within(CHECK_BOUND, asking).await
    }

    async fn head_bucket(&self) -> Result<BucketState, Error> {
        let operation = Operation::HeadBucket;
        let asked = self
            .request_within(RetryPolicy::none(), operation, self.bucket(), || async {
                let head = self.client().head_bucket().bucket(self.bucket());
                Box::pin(head.send())
                    .await
                    .map_err(|error| RequestError::of_sdk(operation, self.bucket(), error))
            })
            .await;
        state(asked)
    }

    async fn list_one(&self) -> Result<BucketState, Error> {
        let operation = Operation::List;
        let asked = self
            .request_within(RetryPolicy::none(), operation, self.bucket(), || async {
                let list = self.client().list_objects_v2().bucket(self.bucket()).max_keys(1);
                Box::pin(list.send())
                    .await
                    .map_err(|error| RequestError::of_sdk(operation, self.bucket(), error))
            })
            .await;
        state(asked)
    }

    /// Writes, reads and removes a small object. Retries like every write. The object's name is its own: two services that
    /// start at the same time would delete each other's.
    pub async fn check_write(&self) -> Result<BucketState, Error> {
        let key = format!("{TRIAL_PREFIX}{}", Uuid::new_v4().simple());
        let trying = async {
            let written = self.put_bytes(&key, Bytes::from_static(b"trial")).await;
            match state(written)? {
                BucketState::Ready => state(self.delete(&key).await),
                other => Ok(other),
            }
        };
        within(TRIAL_BOUND, trying).await
    }
}

async fn within(
    bound: Duration,
    asking: impl Future<Output = Result<BucketState, Error>>,
) -> Result<BucketState, Error> {
    match timeout(bound, Box::pin(asking)).await {
        Ok(state) => state,
        Err(_) => Ok(BucketState::Unreachable {
            reason: format!("no answer within {bound:?}"),
        }),
    }
}

fn state<T>(asked: Result<T, Error>) -> Result<BucketState, Error> {
    let failed = match asked {
        Ok(_) => return Ok(BucketState::Ready),
        Err(Error::Request(failed)) => failed,
        Err(error) => return Err(error),
    };
    let reason = failed.reason.clone();
    match failed.failure {
        Failure::BucketNotFound => Ok(BucketState::Absent),
        Failure::NotFound if failed.operation == Operation::HeadBucket => Ok(BucketState::Absent),
        // It is not the bucket that is not found. Some servers say so of a key that they do not know.
        Failure::NotFound if failed.operation == Operation::List => Ok(BucketState::Denied { reason }),
        Failure::Denied => Ok(BucketState::Denied { reason }),
        Failure::ReadOnly => Ok(BucketState::ReadOnly { reason }),
        Failure::Unavailable | Failure::Throttled => Ok(BucketState::Unreachable { reason }),
        _ => Err(Error::Request(failed)),
    }
}
