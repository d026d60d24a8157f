//! How long to wait between the attempts of a request, and when to stop. The only module here that knows the backoff
//! crate, so that it can be replaced here.

use std::time::Duration;

use backoff::backoff::Backoff as _;
use backoff::{ExponentialBackoff, ExponentialBackoffBuilder};

/// When to try again, and when to stop. A wait is drawn evenly from zero to a bound that doubles from one to the next
/// (full jitter), so that many that failed together do not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The bound of the first wait.
    pub initial: Duration,
    /// The bound of the longest wait.
    pub max_interval: Duration,
    /// No attempt is started later than this after the first one.
    pub max_elapsed: Duration,
    /// How many attempts there are at most, the first one included.
    pub max_attempts: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(100),
            max_interval: Duration::from_secs(5),
            max_elapsed: Duration::from_secs(60),
            max_attempts: 8,
        }
    }
}

impl RetryPolicy {
    /// One attempt.
    pub fn none() -> Self {
        Self {
            max_attempts: 1,
            ..Self::default()
        }
    }

    pub(super) fn waits(&self) -> Waits {
        // The crate draws from a range around an interval; with a factor of 1 the range begins at zero and ends at
        // twice the interval.
        let backoff = ExponentialBackoffBuilder::new()
            .with_initial_interval(self.initial / 2)
            .with_max_interval(self.max_interval / 2)
            .with_multiplier(2.0)
            .with_randomization_factor(1.0)
            .with_max_elapsed_time(Some(self.max_elapsed))
            .build();
        Waits {
            backoff,
            left: self.max_attempts.saturating_sub(1),
        }
    }
}

/// The waits of one request, from its start on.
#[derive(Debug)]
pub(super) struct Waits {
    backoff: ExponentialBackoff,
    left: u32,
}

impl Iterator for Waits {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        self.backoff.next_backoff()
    }
}

#[cfg(test)]
mod tests;
