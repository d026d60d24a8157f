//! What the watcher reads for everybody, and who waits for it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};
use wakelog_model::LifetimeId;
use wakelog_store::LifetimeCursor;

use crate::lane::{Lane, LaneState};
use crate::server_runs::ServerRuns;

#[cfg(test)]
mod tests;

/// How long a read of the progress may stand for the next one. It is read every second.
const KNOWN_FOR: Duration = Duration::from_secs(2);

/// The persister's next offset by partition.
pub(crate) type Progress = Arc<BTreeMap<i32, i64>>;

/// What the watcher reads for everybody, and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Board {
    progress: watch::Sender<Read>,
    server_runs: Mutex<ServerRuns>,
    offset_waiters: AtomicUsize,
    store_waiters: Mutex<HashMap<LifetimeId, StoreWaiter>>,
    wake: Notify,
}

/// One read of the progress.
#[derive(Debug, Clone, Default)]
struct Read {
    /// When it began; `None`: there was none yet.
    began: Option<Instant>,
    /// When it was posted; `None`: there was none yet.
    posted_at: Option<Instant>,
    progress: Progress,
    /// The highest next offset of each partition that was ever read.
    highest: Progress,
}

impl Read {
    fn was_posted_within(&self, age: Duration) -> bool {
        self.posted_at.is_some_and(|posted_at| posted_at.elapsed() < age)
    }
}

#[derive(Debug)]
struct StoreWaiter {
    lane: Weak<Lane>,
    /// The entry at the queue's front, and since when it was seen there.
    front: u64,
    since: Instant,
}

impl Board {
    /// Takes a read of the persister's progress that began then.
    pub(crate) fn post_progress(&self, progress: BTreeMap<i32, i64>, began: Instant) {
        let mut highest = BTreeMap::clone(&self.progress.borrow().highest);
        for (partition, next_offset) in &progress {
            let highest = highest.entry(*partition).or_default();
            *highest = (*highest).max(*next_offset);
        }
        self.progress.send_replace(Read {
            began: Some(began),
            posted_at: Some(Instant::now()),
            progress: Arc::new(progress),
            highest: Arc::new(highest),
        });
    }

    /// Whether a store that is as far as this has less of the partition than it once had: what this process knows of its sessions
    /// may be missing in it until it is folded again.
    pub(crate) fn went_back(&self, partition: i32, now: i64) -> bool {
        now < next_offset(&self.progress.borrow().highest, partition)
    }

    /// Whether binds may be missing in the store that a lifetime of the partition was read from, by a read that began then.
    pub(crate) fn may_lack_binds(&self, partition: i32, cursor: &LifetimeCursor, read_at: Instant) -> bool {
        let (server_run, folded) = (cursor.server_run, cursor.next_offset);
        self.post_server_run(server_run, read_at);
        let is_doubted = self.server_runs().may_lack_binds(partition, server_run, folded);
        is_doubted || self.went_back(partition, folded)
    }

    /// Takes the run of the database's server, of a read that began then.
    pub(crate) fn post_server_run(&self, server_run: i64, read_at: Instant) {
        self.server_runs().met(server_run, read_at, Instant::now());
    }

    /// When it was noticed last that another run of the server answers. Nothing that was read before gives `LOG` acks.
    pub(crate) fn server_changed_at(&self) -> Option<Instant> {
        self.server_runs().noticed_at()
    }

    /// How many of these partitions get no `LOG` acks, because the store may have lost binds of theirs.
    pub(crate) fn doubted_partitions(&self, partitions: &BTreeSet<i32>) -> usize {
        let progress = Arc::clone(&self.progress.borrow().progress);
        let positions = partitions
            .iter()
            .map(|partition| (*partition, next_offset(&progress, *partition)));
        self.server_runs().doubted(positions)
    }

    /// Those of these partitions whose end is wanted before the store is trusted with them, each with the number of the server's run
    /// for which it is.
    pub(crate) fn ends_wanted(
        &self,
        partitions: &BTreeSet<i32>,
        bind_message_timeout: Duration,
    ) -> Vec<(i32, u64)> {
        self.server_runs()
            .ends_wanted(partitions.iter().copied(), Instant::now(), bind_message_timeout)
    }

    /// Takes the partition's end that was wanted for a run of the server.
    pub(crate) fn post_partition_end(&self, partition: i32, number: u64, end: i64) {
        self.server_runs().partition_end(partition, number, end);
    }

    fn server_runs(&self) -> MutexGuard<'_, ServerRuns> {
        self.server_runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the store answered the watcher lately.
    pub(crate) fn was_posted_within(&self, age: Duration) -> bool {
        self.progress.borrow().was_posted_within(age)
    }

    /// The persister's next offset on a partition, as of the last read; 0 for one that it never had.
    pub(crate) fn next_offset(&self, partition: i32) -> i64 {
        next_offset(&self.progress.borrow().progress, partition)
    }

    /// The same, if the progress was read a moment ago: a store that was away since may have come back with less.
    pub(crate) fn known_next_offset(&self, partition: i32) -> Option<i64> {
        let read = self.progress.borrow();
        let is_known = read.was_posted_within(KNOWN_FOR) && !read.progress.is_empty();
        is_known.then(|| next_offset(&read.progress, partition))
    }

    /// Waits until the persister's next offset is at least `target`, by a read that began after this call: what was read before
    /// may be of a store that has lost it since. False: the bound passed.
    pub(crate) async fn wait_for_offset(&self, partition: i32, target: i64, bound: Duration) -> bool {
        if target <= 0 {
            return true;
        }
        let called = Instant::now();
        let deadline = called + bound;
        let mut reads = self.progress.subscribe();
        let _waiting = OffsetWaiter::new(self);
        loop {
            let read = reads.borrow_and_update().clone();
            let is_fresh = read.began.is_some_and(|began| began >= called);
            if is_fresh && next_offset(&read.progress, partition) >= target {
                return true;
            }
            if !matches!(timeout_at(deadline, reads.changed()).await, Ok(Ok(()))) {
                return false;
            }
        }
    }

    /// A lifetime's oldest unacknowledged entry, `front`, waits for the hot tail.
    pub(crate) fn store_wanted(&self, lifetime: LifetimeId, front: u64, lane: &Weak<Lane>) {
        let mut waiters = self.store_waiters();
        let Entry::Vacant(vacant) = waiters.entry(lifetime) else {
            return;
        };
        vacant.insert(StoreWaiter {
            lane: Weak::clone(lane),
            front,
            since: Instant::now(),
        });
        drop(waiters);
        self.wake.notify_one();
    }

    /// The lifetimes that wait for the hot tail. One whose front did not move for longer than `patience` is left to
    /// the slow reads.
    pub(crate) fn store_waiting_lanes(&self, patience: Duration) -> Vec<Arc<Lane>> {
        let mut waiting = Vec::new();
        self.store_waiters().retain(|_, waiter| {
            let Some(lane) = waiter.lane.upgrade() else {
                return false;
            };
            let Some(front) = lane.look(LaneState::needs_store) else {
                return false;
            };
            if front != waiter.front {
                (waiter.front, waiter.since) = (front, Instant::now());
            }
            if waiter.since.elapsed() < patience {
                waiting.push(lane);
            }
            true
        });
        waiting
    }

    /// Whether somebody waits for the next read.
    pub(crate) fn somebody_waits(&self, patience: Duration) -> bool {
        self.offset_waiters.load(Ordering::Relaxed) > 0
            || self
                .store_waiters()
                .values()
                .any(|waiter| waiter.since.elapsed() < patience)
    }

    /// Resolves when somebody starts to wait.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    fn store_waiters(&self) -> MutexGuard<'_, HashMap<LifetimeId, StoreWaiter>> {
        self.store_waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next_offset(progress: &Progress, partition: i32) -> i64 {
    progress.get(&partition).copied().unwrap_or(0)
}

struct OffsetWaiter<'a>(&'a Board);

impl<'a> OffsetWaiter<'a> {
    fn new(board: &'a Board) -> Self {
        board.offset_waiters.fetch_add(1, Ordering::Relaxed);
        board.wake.notify_one();
        Self(board)
    }
}

impl Drop for OffsetWaiter<'_> {
    fn drop(&mut self) {
        self.0.offset_waiters.fetch_sub(1, Ordering::Relaxed);
    }
}
