//! The service: what is due is done, a few sessions at a time, and what fails is tried again later.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wakelog_archive::ObjectStore;
use wakelog_store::Store;

use crate::job::Job;
use crate::options::{Options, Share};
use crate::queue::{Queue, QueueLimits};
use crate::share::{Partitions, keep_share};
use crate::shared::Shared;
use crate::status::StatusHandle;
use crate::sweep::Cursors;
use crate::tail::Settled;
use crate::{Error, telemetry};

/// Jobs that wait to be taken into the queue.
const WAKES: usize = 1_024;

/// How soon a session that is not settled is looked at again.
const SOON: Duration = Duration::from_millis(200);

/// Moves history out of the hot tail and into the archive.
pub struct Service {
    shared: Arc<Shared>,
    status: StatusHandle,
}

/// A job that has ended.
struct Ended {
    job: Job,
    outcome: Result<Settled, Error>,
    took: Duration,
}

impl Service {
    /// Sets the service up. Talks to nobody yet.
    pub fn new(options: Options, store: Store, objects: ObjectStore) -> Result<Self, Error> {
        options.check()?;
        let partitions = match &options.share {
            Share::All { partitions } => Partitions::all(*partitions),
            Share::Group(_) => Partitions::default(),
        };
        Ok(Self {
            shared: Arc::new(Shared {
                options,
                store,
                objects,
                partitions,
            }),
            status: StatusHandle::default(),
        })
    }

    /// What the service is doing, also while it runs.
    pub fn status(&self) -> StatusHandle {
        self.status.clone()
    }

    /// Runs until `shutdown`, which waits for the work in flight. Nothing that the store, the archive or the log does ends it.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let (wakes, mut woken) = mpsc::channel(WAKES);
        // What finds work ends first, what does it last.
        let stop_finding = shutdown.child_token();
        let sharing = tokio::spawn(share_again_and_again(
            self.shared.clone(),
            self.status.clone(),
            wakes.clone(),
            stop_finding.clone(),
        ));
        let sweeping = tokio::spawn(sweep_again_and_again(
            self.shared.clone(),
            self.status.clone(),
            wakes,
            stop_finding,
        ));
        let mut work = Work::new(&self.shared, &self.status);
        loop {
            work.start_due();
            let next = work.next_due();
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(job) = woken.recv() => work.wake(job),
                Some(ended) = work.running.join_next(), if !work.running.is_empty() => work.ended(ended),
                () = tokio::time::sleep_until(next.into()) => {}
            }
        }
        woken.close();
        let drained = tokio::time::timeout(self.shared.options.drain_timeout, async {
            while work.running.join_next().await.is_some() {}
        })
        .await;
        if drained.is_err() {
            // Each step of it can be broken off at any point.
            tracing::warn!(sessions = work.running.len(), "stopped with work in flight");
        }
        for task in [sharing, sweeping] {
            task.await.map_err(|_| Error::TaskDied)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Service")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}

/// What waits and what is being done.
struct Work<'a> {
    shared: &'a Arc<Shared>,
    status: &'a StatusHandle,
    queue: Queue<Job>,
    busy: HashSet<wakelog_model::SessionId>,
    running: JoinSet<Ended>,
}

impl<'a> Work<'a> {
    fn new(shared: &'a Arc<Shared>, status: &'a StatusHandle) -> Self {
        let options = &shared.options;
        Self {
            shared,
            status,
            queue: Queue::new(QueueLimits {
                jobs: options.waiting_jobs,
                first_pause: options.first_pause,
                longest_pause: options.longest_pause,
            }),
            busy: HashSet::new(),
            running: JoinSet::new(),
        }
    }

    fn wake(&mut self, job: Job) {
        self.queue.wake(job, Instant::now() + self.shared.options.settle);
        if self.queue.take_overflowed() {
            tracing::warn!("more sessions wait than are remembered; sweeps find the others");
        }
    }

    /// Starts what is due, as far as there is room. Two jobs of one session are never done at a time.
    fn start_due(&mut self) {
        while self.running.len() < self.shared.options.concurrent_jobs {
            let now = Instant::now();
            let Some(job) = self.queue.take_due(now) else {
                break;
            };
            if !self.busy.insert(job.session()) {
                self.queue.wake(job, now + SOON);
                break;
            }
            let shared = self.shared.clone();
            self.running.spawn(async move {
                let started = Instant::now();
                let outcome = attend(&shared, job).await;
                Ended {
                    job,
                    outcome,
                    took: started.elapsed(),
                }
            });
        }
        telemetry::waiting(self.queue.len());
    }

    fn next_due(&self) -> Instant {
        let idle = Instant::now() + self.shared.options.sweep_interval;
        if self.running.len() >= self.shared.options.concurrent_jobs {
            return idle;
        }
        self.queue.next_due().unwrap_or(idle)
    }

    fn ended(&mut self, ended: Result<Ended, tokio::task::JoinError>) {
        let Ended { job, outcome, took } = match ended {
            Ok(ended) => ended,
            Err(error) => {
                // Which one it was is not known; nobody works on any session that is not running.
                tracing::error!(%error, "work on a session died");
                if self.running.is_empty() {
                    self.busy.clear();
                }
                return;
            }
        };
        self.busy.remove(&job.session());
        let now = Instant::now();
        match outcome {
            Ok(settled) => {
                self.queue.succeeded(job);
                self.status.succeeded(job.session());
                if settled == Settled::NotYet {
                    self.queue.wake(job, now + SOON);
                }
                telemetry::job(job, "done", took);
            }
            Err(error) => {
                let pause = self.queue.failed(job, now);
                telemetry::job(job, "failed", took);
                let detail = crate::chain(&error);
                tracing::warn!(
                    session = %job.session(),
                    job = job.name(),
                    pause_ms = pause.as_millis() as u64,
                    error = detail,
                    "archiving a session failed, trying again"
                );
                self.status.failed(job.session(), detail);
            }
        }
    }
}

async fn attend(shared: &Shared, job: Job) -> Result<Settled, Error> {
    match job {
        Job::Tail(session) => Box::pin(shared.tend(session)).await,
        Job::Snapshot(session, cause) => {
            Box::pin(shared.snapshot(session, cause)).await?;
            Ok(Settled::Yes)
        }
        Job::Erasure(session) => {
            Box::pin(shared.erase(session)).await?;
            Ok(Settled::Yes)
        }
    }
}

async fn share_again_and_again(
    shared: Arc<Shared>,
    status: StatusHandle,
    wakes: mpsc::Sender<Job>,
    stop: CancellationToken,
) {
    let mut pause = shared.options.first_pause;
    while !stop.is_cancelled() {
        let kept = Box::pin(keep_share(&shared.options, &shared.partitions, &wakes, &stop)).await;
        let Err(error) = kept else {
            status.sharing(None);
            return;
        };
        let detail = crate::chain(&error);
        tracing::warn!(
            error = detail,
            pause_ms = pause.as_millis() as u64,
            "left the archivers' group, joining again"
        );
        status.sharing(Some(detail));
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(shared.options.longest_pause);
    }
}

async fn sweep_again_and_again(
    shared: Arc<Shared>,
    status: StatusHandle,
    wakes: mpsc::Sender<Job>,
    stop: CancellationToken,
) {
    let mut cursors = Cursors::default();
    let mut pause = shared.options.sweep_interval;
    loop {
        let swept = tokio::select! {
            () = stop.cancelled() => return,
            swept = shared.sweep(&mut cursors, &wakes) => swept,
        };
        pause = match swept {
            Ok(()) => {
                status.swept(None);
                shared.options.sweep_interval
            }
            Err(error) => {
                let detail = crate::chain(&error);
                tracing::warn!(error = detail, "looking for work failed");
                status.swept(Some(detail));
                (pause * 2).min(shared.options.longest_pause.max(shared.options.sweep_interval))
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}
