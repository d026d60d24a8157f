//! One lifetime on this relay: its cache, its unacknowledged publishes, and those who wait for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::{Instant, timeout_at};
use tonic::Status;
use wakelog_stream::{Delivery, Producer, PublishError};

use crate::ack::Level;
use crate::admission::{Certainty, Decision, EntryRequest};
use crate::auth::Identity;
use crate::board::Board;
use crate::facts::Facts;
use crate::{metrics, refusals};

mod progress;
mod pump;
mod state;

pub(crate) use progress::{AckOutcome, AckRefusal, LaneProgress};
pub(crate) use state::{LaneLimits, LaneState, PartOrder};

use state::{NotNow, Published};

/// One lifetime on this relay.
#[derive(Debug)]
pub(crate) struct Lane {
    pub identity: Identity,
    record_key: String,
    state: Mutex<LaneState>,
    progress: watch::Sender<LaneProgress>,
    deliveries: mpsc::UnboundedSender<InFlight>,
    /// One direct read of the store at a time.
    pub reading: tokio::sync::Mutex<()>,
    board: Arc<Board>,
    me: Weak<Lane>,
}

/// A part on its way to the log. The window bounds how many there are.
struct InFlight {
    part: Published,
    delivery: Delivery,
    _budget: OwnedSemaphorePermit,
}

/// A part that is ready to be published.
pub(crate) struct ReadyPart {
    pub record: Bytes,
    pub bytes: u64,
    pub budget: OwnedSemaphorePermit,
}

/// Why a part was not published.
#[derive(Debug)]
pub(crate) enum PublishFailure {
    /// The lane has moved since the entry was admitted: ask again.
    AskAgain,
    /// The producer has no room.
    QueueFull,
    /// Nothing more of this entry will be published.
    Refused(Status),
}

impl Lane {
    /// Makes a lane and its delivery pump, which ends with it.
    pub(crate) fn new(identity: Identity, limits: LaneLimits, board: Arc<Board>) -> Arc<Self> {
        let (deliveries, reports) = mpsc::unbounded_channel();
        let lane = Arc::new_cyclic(|me| Self {
            identity,
            record_key: identity.session.to_string(),
            state: Mutex::new(LaneState::new(identity.generation, limits)),
            progress: watch::Sender::default(),
            deliveries,
            reading: tokio::sync::Mutex::default(),
            board,
            me: Weak::clone(me),
        });
        tokio::spawn(pump::pump(Arc::downgrade(&lane), reports));
        lane
    }

    /// Decides on an entry.
    pub(crate) fn admit(&self, request: EntryRequest, certainty: Certainty) -> Decision {
        self.change(|state| state.admit(request, certainty))
    }

    /// Publishes one part of a stream's entry. Returns the epoch that it was published in.
    pub(crate) fn publish_part(
        &self,
        producer: &Producer,
        order: &PartOrder,
        part: ReadyPart,
    ) -> Result<u64, PublishFailure> {
        self.change(|state| self.publish(state, producer, order, part))
    }

    /// Publishes all parts of an entry, with nothing of this lifetime in between. Returns the epoch.
    pub(crate) fn publish_entry(
        &self,
        producer: &Producer,
        owner: u64,
        request: EntryRequest,
        asked: Level,
        parts: Vec<ReadyPart>,
    ) -> Result<u64, PublishFailure> {
        let count = parts.len();
        self.change(|state| {
            let mut epoch = 0;
            for (index, part) in parts.into_iter().enumerate() {
                let (number, last) = (index as u32, index + 1 == count);
                let order = PartOrder {
                    owner,
                    request,
                    part: number,
                    last,
                    bytes: part.bytes,
                    asked,
                    epoch,
                };
                epoch = self
                    .publish(state, producer, &order, part)
                    .inspect_err(|_| state.abandon(owner))?;
            }
            Ok(epoch)
        })
    }

    fn publish(
        &self,
        state: &mut LaneState,
        producer: &Producer,
        order: &PartOrder,
        part: ReadyPart,
    ) -> Result<u64, PublishFailure> {
        let seq = order.request.seq;
        let publication = state.begin_part(order).map_err(|why| match why {
            NotNow::AskAgain => PublishFailure::AskAgain,
            NotNow::Displaced => PublishFailure::Refused(refusals::displaced(seq)),
        })?;
        let folded_before = state.folded();
        let delivery = match producer.publish(self.identity.partition, &self.record_key, &part.record) {
            Ok(delivery) => delivery,
            Err(PublishError::QueueFull { .. }) => return Err(PublishFailure::QueueFull),
            Err(error) => {
                tracing::warn!(lifetime = %self.identity.lifetime, seq, %error, "entry was not published");
                state.publish_failed(seq);
                return Err(PublishFailure::Refused(refusals::send_again(seq)));
            }
        };
        state.part_published(order);
        metrics::in_flight_bytes(part.bytes as f64);
        let published = Published {
            seq,
            publication,
            bytes: part.bytes,
            last: order.last,
            folded_before,
        };
        let in_flight = InFlight {
            part: published,
            delivery,
            _budget: part.budget,
        };
        if self.deliveries.send(in_flight).is_err() {
            // The pump only ends with the lane, or with the runtime.
            state.publish_failed(seq);
            return Err(PublishFailure::Refused(refusals::shutting_down()));
        }
        Ok(state.progress().epoch)
    }

    /// Forgets the unfinished entry of a stream or call that went away.
    pub(crate) fn abandon(&self, owner: u64) {
        self.change(|state| state.abandon(owner));
    }

    fn delivered(&self, part: Published, offset: Option<i64>) {
        metrics::in_flight_bytes(-(part.bytes as f64));
        let server_changed_at = self.board.server_changed_at();
        self.change(|state| {
            state.server_changed_at = server_changed_at;
            state.delivered(part, offset, Instant::now());
        });
    }

    /// Takes a read of the store. Returns the binding generation for which the partition's end is wanted, if any.
    pub(crate) fn observe(&self, facts: Facts) -> Option<u64> {
        self.change(|state| state.observe(facts))
    }

    /// Reads the state, without changing it.
    pub(crate) fn look<T>(&self, read: impl FnOnce(&LaneState) -> T) -> T {
        read(&self.lock())
    }

    /// Changes the state and lets those who wait know.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut LaneState) -> T) -> T {
        let mut state = self.lock();
        let before = state.progress();
        let result = change(&mut state);
        let needs_store = state.needs_store();
        if state.progress() != before {
            self.progress.send_replace(state.progress());
        }
        drop(state);
        if let Some(front) = needs_store {
            self.board.store_wanted(self.identity.lifetime, front, &self.me);
        }
        result
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<LaneProgress> {
        self.progress.subscribe()
    }

    /// Waits for the ack of an entry that was published in `epoch`.
    pub(crate) async fn wait_acked(
        &self,
        seq: u64,
        epoch: u64,
        asked: Level,
        bound: Duration,
    ) -> Result<Level, Status> {
        let outcome = self.wait_until(bound, |lane| {
            let progress = lane.look(LaneState::progress);
            match progress.outcome(seq, epoch, asked) {
                AckOutcome::Pending => None,
                AckOutcome::Acked(level) => Some(Ok(level)),
                AckOutcome::Refused(refusal) => Some(Err(refusals::ack(refusal))),
            }
        });
        outcome.await.unwrap_or_else(|| {
            Err(refusals::unavailable(
                "the entry was published, its ack did not come in time",
            ))
        })
    }

    /// Waits until the entry is not on its way to the log any more. False: the bound passed.
    pub(crate) async fn wait_not_publishing(&self, seq: u64, bound: Duration) -> bool {
        let done = |lane: &Self| (!lane.look(|state| state.is_publishing(seq))).then_some(());
        self.wait_until(bound, done).await.is_some()
    }

    /// Waits for room in the lifetime's window. False: the bound passed.
    pub(crate) async fn wait_for_room(&self, first_part: bool, bytes: u64, bound: Duration) -> bool {
        let room = |lane: &Self| lane.look(|state| state.has_room(first_part, bytes)).then_some(());
        self.wait_until(bound, room).await.is_some()
    }

    async fn wait_until<T>(&self, bound: Duration, check: impl Fn(&Self) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + bound;
        let mut changes = self.subscribe();
        loop {
            changes.mark_unchanged();
            if let Some(found) = check(self) {
                return Some(found);
            }
            // The lane holds the sender, so it can't close.
            timeout_at(deadline, changes.changed()).await.ok()?.ok()?;
        }
    }

    fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for InFlight {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "InFlight({:?})", self.part)
    }
}
