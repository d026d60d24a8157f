//! The lifetimes on this relay: a bounded map, from which only idle ones are evicted.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tonic::Status;
use wakelog_model::LifetimeId;

use crate::auth::Identity;
use crate::board::Board;
use crate::lane::{Lane, LaneLimits, LaneState};
use crate::{metrics, refusals};

#[cfg(test)]
mod tests;

/// How long after its last use a lifetime's fences are still read.
const WATCHED_AFTER_USE: Duration = Duration::from_secs(30);

/// The lifetimes on this relay.
#[derive(Debug)]
pub(crate) struct Lanes {
    slots: Mutex<HashMap<LifetimeId, Slot>>,
    max: usize,
    idle: Duration,
    watched_after_use: Duration,
    limits: LaneLimits,
    board: Arc<Board>,
}

#[derive(Debug)]
struct Slot {
    lane: Arc<Lane>,
    /// Calls that hold the lane. Counted under the map's lock, so that an eviction can't miss one.
    users: Arc<AtomicUsize>,
}

/// A lane that is held by a call and so is not evicted.
#[derive(Debug)]
pub(crate) struct HeldLane {
    lane: Arc<Lane>,
    users: Arc<AtomicUsize>,
}

impl Lanes {
    pub(crate) fn new(max: usize, idle: Duration, limits: LaneLimits, board: Arc<Board>) -> Self {
        Self {
            slots: Mutex::default(),
            max,
            idle,
            watched_after_use: WATCHED_AFTER_USE,
            limits,
            board,
        }
    }

    /// The lane of a lifetime, made if need be.
    pub(crate) fn hold(&self, identity: Identity) -> Result<HeldLane, Status> {
        let mut slots = self.slots();
        if !slots.contains_key(&identity.lifetime) && slots.len() >= self.max {
            evict_longest_unused(&mut slots);
            if slots.len() >= self.max {
                return Err(refusals::back_pressure(
                    "too many lifetimes write through this relay",
                ));
            }
        }
        let slot = slots.entry(identity.lifetime).or_insert_with(|| Slot {
            lane: Lane::new(identity, self.limits, Arc::clone(&self.board)),
            users: Arc::default(),
        });
        slot.users.fetch_add(1, Ordering::Relaxed);
        Ok(HeldLane {
            lane: Arc::clone(&slot.lane),
            users: Arc::clone(&slot.users),
        })
    }

    /// Evicts what has been idle for long.
    pub(crate) fn evict_idle(&self) {
        let mut slots = self.slots();
        slots.retain(|_, slot| {
            let unused = slot.lane.look(|state| state.last_used.elapsed() >= self.idle);
            !(unused && slot.is_evictable())
        });
        metrics::lanes(slots.len());
    }

    /// The lifetimes whose fences matter now.
    pub(crate) fn live(&self) -> Vec<Arc<Lane>> {
        let is_live = |slot: &&Slot| {
            slot.users.load(Ordering::Relaxed) > 0
                || slot
                    .lane
                    .look(|state| !state.is_idle() || state.last_used.elapsed() < self.watched_after_use)
        };
        self.slots()
            .values()
            .filter(is_live)
            .map(|slot| Arc::clone(&slot.lane))
            .collect()
    }

    /// Entries that are published and not acknowledged, over all lifetimes.
    pub(crate) fn unacked_entries(&self) -> usize {
        self.slots()
            .values()
            .map(|slot| slot.lane.look(LaneState::unacked_entries))
            .sum()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<LifetimeId, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn is_evictable(&self) -> bool {
        self.users.load(Ordering::Relaxed) == 0 && self.lane.look(LaneState::is_idle)
    }
}

fn evict_longest_unused(slots: &mut HashMap<LifetimeId, Slot>) {
    let longest_unused = slots
        .iter()
        .filter(|(_, slot)| slot.is_evictable())
        .min_by_key(|(_, slot)| slot.lane.look(|state| state.last_used))
        .map(|(lifetime, _)| *lifetime);
    if let Some(lifetime) = longest_unused {
        slots.remove(&lifetime);
    }
}

impl Deref for HeldLane {
    type Target = Lane;

    fn deref(&self) -> &Lane {
        &self.lane
    }
}

impl Drop for HeldLane {
    fn drop(&mut self) {
        self.users.fetch_sub(1, Ordering::Relaxed);
    }
}
