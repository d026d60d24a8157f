//! What the stack is asked to do while it fails: writers that attach, write, resume, end, die and take over from each other, each on
//! sessions of its own. Everything that they send and every acknowledgement is kept for the checker.
//!
//! | module | what it does |
//! |---|---|
//! | `client` | calls that go on to the next server, for as long as a user would try |
//! | `ledger` | what was sent to a session, and what was acknowledged |
//! | `stint` | one writer's time with a session, from its attachment to its end |
//! | `writing` | sending entries in one lifetime, also until a rival takes over |

pub mod client;
pub mod ledger;
mod stint;
mod writing;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::availability::Availability;
use client::Servers;
use ledger::Ledger;
use stint::Stint;

/// How much is written.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub seed: u64,
    pub writers: usize,
    pub sessions: usize,
    /// The pause after each entry.
    pub pace: Duration,
}

/// What all writers share.
pub struct Shared {
    pub plan: Plan,
    pub servers: Servers,
    pub availability: Arc<Availability>,
    pub counts: Counts,
    stop: AtomicBool,
    failures: Mutex<Vec<String>>,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Counts {
    pub resumes: AtomicU64,
    pub attachments: AtomicU64,
    pub take_overs: AtomicU64,
    /// Writers that were refused because another one had taken over.
    pub refused: AtomicU64,
    /// Writers that died with entries that were not acknowledged.
    pub deaths: AtomicU64,
    pub ends: AtomicU64,
    /// Frames that were sent once more after they were acknowledged.
    pub repeats: AtomicU64,
    /// Entries that have the bytes of the one before.
    pub twins: AtomicU64,
}

/// One more.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Shared {
    /// Something happened that no fault explains.
    pub fn fail(&self, what: String) {
        eprintln!("{:8.1} s  FAILURE {what}", self.availability.now() as f64 / 1e3);
        self.failures.lock().expect("not poisoned").push(what);
    }

    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The writers at work.
pub struct Workload {
    pub shared: Arc<Shared>,
    writers: Vec<JoinHandle<Vec<Arc<Ledger>>>>,
}

/// How long a writer may take to end: it gives up after two minutes without progress, and so does a call.
const END_BOUND: Duration = Duration::from_secs(300);

impl Workload {
    /// Starts writing. Each writer has every `writers`th session.
    pub fn start(plan: Plan, servers: Servers, availability: Arc<Availability>) -> Self {
        let shared = Arc::new(Shared {
            plan,
            servers,
            availability,
            counts: Counts::default(),
            stop: AtomicBool::new(false),
            failures: Mutex::default(),
        });
        let start = |writer: usize| {
            let ledgers = (0..plan.sessions)
                .filter(|session| session % plan.writers == writer)
                .map(|session| Arc::new(Ledger::new(session)))
                .collect();
            tokio::spawn(write(shared.clone(), writer, ledgers))
        };
        let writers = (0..plan.writers).map(start).collect();
        Self { shared, writers }
    }

    /// Lets every writer come to the end of its stint, and gives back what was sent, and what went wrong.
    pub async fn finish(self) -> (Vec<Arc<Ledger>>, Vec<String>) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut ledgers = Vec::new();
        for (number, writer) in self.writers.into_iter().enumerate() {
            match tokio::time::timeout(END_BOUND, writer).await {
                Ok(Ok(of_writer)) => ledgers.extend(of_writer),
                Ok(Err(panicked)) => self.shared.fail(format!("writer {number}: {panicked}")),
                Err(_) => self
                    .shared
                    .fail(format!("writer {number} does not end within {END_BOUND:?}")),
            }
        }
        ledgers.sort_by_key(|ledger| ledger.number);
        let failures = self.shared.failures.lock().expect("not poisoned").clone();
        (ledgers, failures)
    }
}

async fn write(shared: Arc<Shared>, writer: usize, ledgers: Vec<Arc<Ledger>>) -> Vec<Arc<Ledger>> {
    let mut stints = 0;
    while !shared.is_over() {
        let stint = Box::pin(Stint::begin(shared.clone(), writer, stints, &ledgers));
        stint.await.run().await;
        stints += 1;
    }
    ledgers
}
