//! Which jobs are done next. Pure: the caller says what time it is.
//!
//! A session is looked at a while after it was written to, so that many writes cost one look; a job that failed is tried
//! later and later, and holds up nobody else.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Jobs that wait, each once.
#[derive(Debug)]
pub(crate) struct Queue<J> {
    waiting: HashMap<J, Instant>,
    failures: HashMap<J, u32>,
    limits: QueueLimits,
    /// Jobs were left out for want of room: only a sweep finds them.
    overflowed: bool,
}

/// How much is remembered and how long is waited.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueLimits {
    /// Jobs that wait, at most, and as many whose failures are remembered.
    pub(crate) jobs: usize,
    /// The pause after the first failure; it doubles with each further one.
    pub(crate) first_pause: Duration,
    /// The longest such pause.
    pub(crate) longest_pause: Duration,
}

impl<J: Copy + Eq + Hash> Queue<J> {
    pub(crate) fn new(limits: QueueLimits) -> Self {
        Self {
            waiting: HashMap::new(),
            failures: HashMap::new(),
            limits,
            overflowed: false,
        }
    }

    /// The job is done at `at` or soon after; an earlier time stays, and so does the pause of one that failed.
    pub(crate) fn wake(&mut self, job: J, at: Instant) {
        if let Some(due) = self.waiting.get_mut(&job) {
            if !self.failures.contains_key(&job) {
                *due = (*due).min(at);
            }
            return;
        }
        if self.waiting.len() >= self.limits.jobs {
            self.overflowed = true;
            return;
        }
        self.waiting.insert(job, at);
    }

    /// A job whose time has come, the one that has waited longest first. It is not in the queue any more.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<J> {
        let (job, due) = self
            .waiting
            .iter()
            .min_by_key(|(_, due)| **due)
            .map(|(job, due)| (*job, *due))?;
        if due > now {
            return None;
        }
        self.waiting.remove(&job);
        Some(job)
    }

    /// When the next job is due; `None` if none waits.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.waiting.values().min().copied()
    }

    /// The job is done.
    pub(crate) fn succeeded(&mut self, job: J) {
        self.failures.remove(&job);
    }

    /// The job failed: it is tried again after a pause, whatever wakes it meanwhile. Returns the pause.
    pub(crate) fn failed(&mut self, job: J, now: Instant) -> Duration {
        let has_room = self.failures.len() < self.limits.jobs;
        let failures = match self.failures.get_mut(&job) {
            Some(failures) => {
                *failures = failures.saturating_add(1);
                *failures
            }
            None => {
                if has_room {
                    self.failures.insert(job, 1);
                }
                1
            }
        };
        let pause = self
            .limits
            .first_pause
            .saturating_mul(2_u32.saturating_pow(failures - 1))
            .min(self.limits.longest_pause);
        self.waiting.insert(job, now + pause);
        pause
    }

    /// Whether jobs were left out since the last call.
    pub(crate) fn take_overflowed(&mut self) -> bool {
        std::mem::take(&mut self.overflowed)
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests;
