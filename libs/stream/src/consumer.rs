//! The group consumer: its user names where each partition starts, and is never handed more than it has room for.
//!
//! | module | decision |
//! |---|---|
//! | `member` | the poll thread: one membership of the group after another, and when to give up |
//! | `rebalance` | what happens inside the rebalance callbacks |
//! | `slot` | one assigned partition: its queue, its byte budget, pause and resume |
//! | `records` | the reading end of a partition's queue |

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::error::Error;
use crate::options::Options;

mod member;
mod rebalance;
mod records;
mod slot;

pub use records::PartitionRecords;

/// Events that wait for the user of a consumer.
const EVENT_QUEUE: usize = 256;

const POLL_THREAD: &str = "group-consumer";

/// Says where a partition starts, and lets go of it. Called on the poll thread within a rebalance callback, so the
/// methods must return at once; the futures run on the tokio runtime and are waited for within a bound of half the
/// session time-out. They are never cancelled: one that is late goes on, but its answer is not used.
pub trait PartitionOwner: Send + Sync + 'static {
    /// Takes the partition and says the offset to start at. An error, or no answer in time, makes the consumer leave
    /// the group and join again; [`revoked`](PartitionOwner::revoked) is not called for such a partition.
    fn assigned(
        &self,
        partition: i32,
    ) -> BoxFuture<'static, Result<i64, Box<dyn std::error::Error + Send + Sync>>>;

    /// Lets go of the partition. Its [`PartitionRecords`] have ended before. `lost`: another member may own it
    /// already.
    fn revoked(&self, partition: i32, lost: bool) -> BoxFuture<'static, ()>;
}

/// What a consumer tells its user.
#[derive(Debug)]
pub enum ConsumerEvent {
    /// The partition is this consumer's; its records start at the offset that the owner said.
    Assigned {
        /// The partition.
        partition: i32,
        /// Its records.
        records: PartitionRecords,
    },
    /// The partition is not this consumer's any more, and the owner has let go of it.
    Revoked {
        /// The partition.
        partition: i32,
    },
    /// The partition has stopped, or its owner did not take it. The others go on.
    PartitionError {
        /// The partition.
        partition: i32,
        /// Why.
        error: Error,
    },
    /// The consumer has given up; nothing comes after this.
    Fatal(Error),
}

/// A member of a consumer group, until [`shutdown`](GroupConsumer::shutdown) or until it is dropped, which leaves the
/// group in the background.
pub struct GroupConsumer {
    control: Arc<Control>,
    ended: oneshot::Receiver<()>,
}

/// What the handle and the poll thread share.
#[derive(Debug, Default)]
struct Control {
    stop: AtomicBool,
    rejoin: Mutex<Option<String>>,
    commits: Mutex<BTreeMap<i32, i64>>,
}

impl Control {
    fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

impl GroupConsumer {
    /// Starts the poll thread, which joins the group. Must be called within a tokio runtime.
    pub fn start(
        options: &Options,
        owner: Arc<dyn PartitionOwner>,
    ) -> Result<(GroupConsumer, mpsc::Receiver<ConsumerEvent>), Error> {
        let runtime = Handle::try_current().map_err(|_| Error::NoRuntime {
            operation: "GroupConsumer::start",
        })?;
        let (events, receiver) = mpsc::channel(EVENT_QUEUE);
        let control = Arc::new(Control::default());
        let member = member::Member::new(options, owner, runtime, events, Arc::clone(&control))?;
        let (ending, ended) = oneshot::channel();
        let run = move || {
            member.run();
            ending.send(()).ok();
        };
        std::thread::Builder::new()
            .name(POLL_THREAD.to_owned())
            .spawn(run)
            .map_err(|error| Error::Thread {
                name: POLL_THREAD,
                reason: error.to_string(),
            })?;
        Ok((GroupConsumer { control, ended }, receiver))
    }

    /// Tells the brokers how far this group has come. A courtesy for lag tools: it is sent now and then, and nobody starts
    /// from it.
    pub fn committed(&self, partition: i32, next_offset: i64) {
        locked(&self.control.commits).insert(partition, next_offset);
    }

    /// Leaves the group and joins it again after a while, so that owners are asked again where to start. For a user
    /// that has found out that another member owns one of its partitions.
    pub fn rejoin(&self, reason: impl Into<String>) {
        locked(&self.control.rejoin).get_or_insert_with(|| reason.into());
    }

    /// Leaves the group: every partition is revoked, then the poll thread ends. If the bound passes, that goes on in
    /// the background.
    pub async fn shutdown(mut self, bound: Duration) -> Result<(), Error> {
        self.control.stop();
        match tokio::time::timeout(bound, &mut self.ended).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Error::Thread {
                name: POLL_THREAD,
                reason: "it has panicked".to_owned(),
            }),
            Err(_) => Err(Error::TimedOut {
                operation: "leaving the group",
                bound,
            }),
        }
    }

    /// [`shutdown`](GroupConsumer::shutdown), while what the consumer still tells is taken and dropped: nobody may wait for
    /// room in the queue of events while the group is left.
    pub async fn leave(
        self,
        mut events: mpsc::Receiver<ConsumerEvent>,
        bound: Duration,
    ) -> Result<(), Error> {
        let leaving = self.shutdown(bound);
        tokio::pin!(leaving);
        let mut events_are_open = true;
        loop {
            tokio::select! {
                left = &mut leaving => return left,
                event = events.recv(), if events_are_open => events_are_open = event.is_some(),
            }
        }
    }
}

impl Drop for GroupConsumer {
    fn drop(&mut self) {
        self.control.stop();
    }
}

/// A poisoned lock is taken all the same: what it guards is replaced whole, never left half changed.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
