//! Which partitions this member holds, and the workers on them.
//!
//! A claim is made in the rebalance callback; its records come as an event somewhat later. In between the claim waits
//! here. Nothing depends on this for correctness: a worker that outlives its assignment is fenced by the epoch.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use wakelog_store::Claim;

use crate::start::StartDecision;

/// A claimed partition whose records have not come yet.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) claim: Claim,
    pub(crate) start: StartDecision,
    pub(crate) lease: Lease,
}

/// The two ends of one assignment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lease {
    /// Cancelled when the partition is given back.
    pub(crate) stop: CancellationToken,
    /// Cancelled when the worker has ended.
    pub(crate) ended: CancellationToken,
}

#[derive(Debug, Default)]
struct Held {
    waiting: VecDeque<Assignment>,
    running: Vec<Lease>,
}

/// The partitions of one membership.
#[derive(Debug, Default)]
pub(crate) struct Assignments {
    partitions: Mutex<HashMap<i32, Held>>,
}

impl Assignments {
    /// Keeps a claim until its records come.
    pub(crate) fn claimed(&self, partition: i32, assignment: Assignment) {
        self.lock()
            .entry(partition)
            .or_default()
            .waiting
            .push_back(assignment);
    }

    /// The claim whose records have come; `None` if it was given back meanwhile. From here on it has a worker.
    ///
    /// A claim that came too late for its rebalance has no records; it waits here for nothing and is passed over.
    pub(crate) fn start(&self, partition: i32) -> Option<Assignment> {
        let mut partitions = self.lock();
        let held = partitions.get_mut(&partition)?;
        if held.waiting.front()?.lease.stop.is_cancelled() {
            held.waiting.pop_front();
            return None;
        }
        let newest = std::mem::take(&mut held.waiting).pop_back()?;
        held.running.retain(|lease| !lease.ended.is_cancelled());
        held.running.push(newest.lease.clone());
        Some(newest)
    }

    /// Stops what is on the partition. Hands out the workers that have still to end.
    pub(crate) fn release(&self, partition: i32) -> Vec<Lease> {
        self.lock()
            .get_mut(&partition)
            .map(Held::release)
            .unwrap_or_default()
    }

    /// Stops everything. Hands out the workers that have still to end.
    pub(crate) fn release_all(&self) -> Vec<Lease> {
        self.lock().values_mut().flat_map(Held::release).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Held>> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn release(&mut self) -> Vec<Lease> {
        for assignment in &self.waiting {
            // It stays in the queue: its records still come, and must find this one and not a later claim.
            assignment.lease.stop.cancel();
        }
        let running = std::mem::take(&mut self.running);
        for lease in &running {
            lease.stop.cancel();
        }
        running
    }
}

#[cfg(test)]
mod tests;
