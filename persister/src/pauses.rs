//! Growing pauses between tries that only a shutdown, or giving the partition back, ends.

use std::time::Duration;

use wakelog_stream::RetryPolicy;
use wakelog_stream::retry::Waits;

/// Growing pauses, up to a longest one.
#[derive(Debug)]
pub(crate) struct Pauses {
    policy: RetryPolicy,
    waits: Waits,
}

impl Pauses {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        let policy = RetryPolicy {
            initial: first,
            max_interval: longest,
            max_elapsed: Duration::from_secs(24 * 3600),
            max_attempts: u32::MAX,
            ..RetryPolicy::default()
        };
        Self {
            policy,
            waits: policy.waits(),
        }
    }

    /// The pause before the next try.
    pub(crate) fn next_pause(&mut self) -> Duration {
        self.waits.next().unwrap_or(self.policy.max_interval)
    }

    /// Starts with the first pause again.
    pub(crate) fn reset(&mut self) {
        self.waits = self.policy.waits();
    }
}
