//! Reads the fences of live lifetimes and the persister's progress: every second, and every few milliseconds while
//! somebody waits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use wakelog_model::LifetimeId;
use wakelog_store::LifetimeCursor;

use crate::board::Board;
use crate::facts::{Facts, Standing};
use crate::ingest::Ingest;
use crate::lane::Lane;
use crate::metrics;

/// Lifetimes of one query.
const LANES_PER_READ: usize = 1_000;

/// How long after a failed read the next one comes, at the earliest.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(200);

/// How often idle lifetimes are looked for.
const EVICTION_INTERVAL: Duration = Duration::from_secs(10);

/// For what a partition's end is wanted.
enum EndWanted {
    /// A lane, and the binding generation that may lapse.
    Binding(Arc<Lane>, u64),
    /// The number of a run of the database's server that may lack binds.
    ServerRun(Arc<Board>, u64),
}

impl EndWanted {
    fn is(self, partition: i32, end: i64) {
        match self {
            Self::Binding(lane, generation) => {
                lane.change(|state| state.partition_end(generation, end));
            }
            Self::ServerRun(board, number) => {
                board.post_partition_end(partition, number, end);
            }
        }
    }
}

/// Runs until stopped.
pub(crate) async fn watch(ingest: Arc<Ingest>, stop: CancellationToken) {
    let mut watcher = Watcher {
        ingest: &ingest,
        reading_ends: Arc::default(),
        failing_since: None,
        read_all_at: Instant::now(),
    };
    let options = &ingest.options;
    let mut next_full = Instant::now();
    let mut next_eviction = Instant::now() + EVICTION_INTERVAL;
    while !stop.is_cancelled() {
        let started = Instant::now();
        let full = started >= next_full;
        if full {
            next_full = started + options.fence_interval;
        }
        if started >= next_eviction {
            next_eviction = started + EVICTION_INTERVAL;
            ingest.lanes.evict_idle();
        }
        let succeeded = watcher.read(full).await;
        let fast = match succeeded {
            true => Instant::now() + options.poll_interval,
            false => Instant::now() + PAUSE_AFTER_FAILURE,
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep_until(next_full.max(fast)) => {}
            () = somebody_waits(&ingest) => sleep_until(fast).await,
        }
    }
}

async fn somebody_waits(ingest: &Ingest) {
    while !ingest.board.somebody_waits(ingest.options.ack_wait) {
        ingest.board.woken().await;
    }
}

struct Watcher<'a> {
    ingest: &'a Ingest,
    reading_ends: Arc<Mutex<BTreeSet<i32>>>,
    failing_since: Option<Instant>,
    read_all_at: Instant,
}

impl Watcher<'_> {
    /// Reads once. False: the store did not answer.
    async fn read(&mut self, full: bool) -> bool {
        if is_read_skipped() {
            return true;
        }
        match self.try_read(full).await {
            Ok(()) => {
                if let Some(since) = self.failing_since.take() {
                    tracing::info!(after = ?since.elapsed(), "fences can be read again");
                }
                true
            }
            Err(error) => {
                metrics::watcher_failure();
                if self.failing_since.is_none() {
                    self.failing_since = Some(Instant::now());
                    tracing::warn!(%error, "fences can't be read");
                }
                metrics::fence_age(self.read_all_at.elapsed().as_secs_f64());
                false
            }
        }
    }

    async fn try_read(&mut self, full: bool) -> Result<(), wakelog_store::Error> {
        let ingest = self.ingest;
        let started = Instant::now();
        if full {
            let server_run = ingest.store.server_run().await?;
            ingest.board.post_server_run(server_run, started);
        }
        // Progress first: whatever lies below it is then in the standings.
        let progress = ingest.store.progress_of_topic(&ingest.options.topic).await?;
        let progress: BTreeMap<i32, i64> = progress
            .iter()
            .map(|row| (row.partition, row.next_offset))
            .collect();
        ingest.board.post_progress(progress.clone(), started);
        let waiting = ingest.board.store_waiting_lanes(ingest.options.ack_wait);
        let lanes = if full { ingest.lanes.live() } else { waiting };
        let partitions: BTreeSet<i32> = lanes.iter().map(|lane| lane.identity.partition).collect();
        let mut ends_wanted = Vec::new();
        for some in lanes.chunks(LANES_PER_READ) {
            let read_at = Instant::now();
            let lifetimes: Vec<LifetimeId> = some.iter().map(|lane| lane.identity.lifetime).collect();
            let cursors = ingest
                .store
                .lifetime_cursors(&ingest.options.topic, &lifetimes)
                .await?;
            let cursors: HashMap<LifetimeId, &LifetimeCursor> = cursors
                .iter()
                .map(|cursor| (cursor.lifetime_id, cursor))
                .collect();
            for lane in some {
                let partition = lane.identity.partition;
                let facts = match cursors.get(&lane.identity.lifetime) {
                    Some(cursor) => Facts {
                        standing: Some(Standing::from(*cursor)),
                        read_at,
                        next_offset: cursor.next_offset,
                        may_lack_binds: ingest.board.may_lack_binds(partition, cursor, read_at),
                    },
                    None => {
                        let next_offset = progress.get(&partition).copied().unwrap_or(0);
                        Facts {
                            standing: None,
                            read_at,
                            next_offset,
                            may_lack_binds: ingest.board.went_back(partition, next_offset),
                        }
                    }
                };
                let wanted = lane.observe(facts);
                ends_wanted.extend(wanted.map(|generation| (Arc::clone(lane), generation)));
            }
        }
        if full {
            self.read_all_at = started;
            metrics::doubted_partitions(ingest.board.doubted_partitions(&partitions));
            metrics::fence_age(started.elapsed().as_secs_f64());
        }
        self.read_ends(ends_wanted, &partitions);
        Ok(())
    }

    /// Reads partition ends aside, each partition's by itself: a log or a leader that is away must hold up neither the fences nor
    /// the others.
    fn read_ends(&self, of_lanes: Vec<(Arc<Lane>, u64)>, partitions: &BTreeSet<i32>) {
        let board = &self.ingest.board;
        let timeout = self.ingest.options.bind_message_timeout;
        let mut by_partition: BTreeMap<i32, Vec<EndWanted>> = BTreeMap::new();
        for (lane, generation) in of_lanes {
            let wanted = by_partition.entry(lane.identity.partition).or_default();
            wanted.push(EndWanted::Binding(lane, generation));
        }
        for (partition, number) in board.ends_wanted(partitions, timeout) {
            let wanted = by_partition.entry(partition).or_default();
            wanted.push(EndWanted::ServerRun(Arc::clone(board), number));
        }
        for (partition, wanted) in by_partition {
            let Some(reading) = Reading::begin(&self.reading_ends, partition) else {
                continue;
            };
            let reader = self.ingest.reader.clone();
            tokio::spawn(async move {
                match reader.watermarks(partition).await {
                    Ok(watermarks) => {
                        for wanted in wanted {
                            wanted.is(partition, watermarks.high);
                        }
                    }
                    Err(error) => {
                        tracing::warn!(partition, %error, "partition's end can't be read");
                        sleep(PAUSE_AFTER_FAILURE).await;
                    }
                }
                drop(reading);
            });
        }
    }
}

/// A partition whose end is being read, for as long as this lives.
struct Reading {
    all: Arc<Mutex<BTreeSet<i32>>>,
    partition: i32,
}

impl Reading {
    /// `None`: it is being read.
    fn begin(all: &Arc<Mutex<BTreeSet<i32>>>, partition: i32) -> Option<Self> {
        let is_new = all
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(partition);
        is_new.then(|| Self {
            all: Arc::clone(all),
            partition,
        })
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&self.partition);
    }
}

fn is_read_skipped() -> bool {
    fail::fail_point!("ingest::watcher", |_| true);
    false
}
