//! The object store: an S3 bucket.
//!
//! | module | decision |
//! |---|---|
//! | `options` | where the bucket is, and the bounds of every wait |
//! | `client` | how the SDK's client is set up: its own retries are off |
//! | `attempt` | slots, time-outs and retries around every request |
//! | `retry` | the waits between attempts |
//! | `failure` | what an answer, or the lack of one, means |
//! | `put` | uploads: sent with a checksum, then verified by what the store says it holds |
//! | `multipart` | uploads of large objects in parts |
//! | `verify` | whether the store holds an object as it should be |
//! | `get` | reads of bounded size |
//! | `list` | names by prefix, in pages |
//! | `delete` | removals |
//! | `check` | whether the bucket can be used |

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_s3::Client;
use tokio::sync::Semaphore;

use crate::Error;

mod attempt;
mod check;
mod client;
mod delete;
mod failure;
mod get;
mod list;
mod multipart;
mod options;
mod put;
mod retry;
mod verify;

pub use check::BucketState;
pub use failure::{Failure, Operation, RequestError};
pub use get::{MOST_READ_BYTES, ObjectChunks, ObjectHead};
pub use list::{ListPage, ObjectInfo};
pub use options::Options;
pub use put::Put;
pub use retry::RetryPolicy;
pub use verify::Verified;

/// A handle of the object store. Clones share it, with its connections and its bounds.
///
/// Every request has a time-out, is retried where that helps, within the bounds of [`Options::retry`], and takes one of
/// [`Options::concurrency`] slots. Calls that are dropped stop: a write among them may then have happened.
#[derive(Clone)]
pub struct ObjectStore {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    options: Options,
    slots: Semaphore,
    requests: AtomicU64,
}

impl ObjectStore {
    /// A handle of the bucket. Sends nothing. [`Error::Configuration`].
    pub fn new(options: Options) -> Result<Self, Error> {
        options.check()?;
        let inner = Inner {
            client: client::build(&options),
            slots: Semaphore::new(options.concurrency),
            requests: AtomicU64::new(0),
            options,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Requests that this handle and its clones have sent, retries included.
    pub fn requests(&self) -> u64 {
        self.inner.requests.load(Ordering::Relaxed)
    }

    fn client(&self) -> &Client {
        &self.inner.client
    }

    fn bucket(&self) -> &str {
        &self.inner.options.bucket
    }

    /// The name within the bucket.
    fn stored_name(&self, key: &str) -> String {
        format!("{}{key}", self.inner.options.stored_prefix())
    }
}

impl std::fmt::Debug for ObjectStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ObjectStore")
            .field("options", &self.inner.options)
            .field("requests", &self.requests())
            .finish_non_exhaustive()
    }
}
