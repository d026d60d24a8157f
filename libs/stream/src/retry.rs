//! Backoff with an end. The only module of the services that knows the backoff crate, so that it can be replaced
//! here.

use std::future::Future;
use std::time::Duration;

use backoff::backoff::Backoff;
use backoff::{ExponentialBackoff, ExponentialBackoffBuilder};

#[cfg(test)]
mod tests;

/// How long to wait between attempts, and when to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// The first wait.
    pub initial: Duration,
    /// The longest wait.
    pub max_interval: Duration,
    /// What a wait is multiplied by to get the next one.
    pub multiplier: f64,
    /// Part of a wait by which it may randomly be shorter or longer, 0 to 1.
    pub jitter: f64,
    /// No attempt is started later than this after the first one.
    pub max_elapsed: Duration,
    /// How many attempts there are at most, the first one included.
    pub max_attempts: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(50),
            max_interval: Duration::from_secs(2),
            multiplier: 2.0,
            jitter: 0.3,
            max_elapsed: Duration::from_secs(30),
            max_attempts: 100,
        }
    }
}

impl RetryPolicy {
    /// The default with another end.
    pub fn within(max_elapsed: Duration) -> Self {
        Self {
            max_elapsed,
            ..Self::default()
        }
    }

    /// The waits, for a loop that [`retry`] does not fit.
    pub fn waits(&self) -> Waits {
        let backoff = ExponentialBackoffBuilder::new()
            .with_initial_interval(self.initial)
            .with_max_interval(self.max_interval)
            .with_multiplier(self.multiplier)
            .with_randomization_factor(self.jitter)
            .with_max_elapsed_time(Some(self.max_elapsed))
            .build();
        Waits {
            backoff,
            left: self.max_attempts.saturating_sub(1),
        }
    }
}

/// The waits of one loop, from its start on.
#[derive(Debug)]
pub struct Waits {
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

/// Runs `operation` until it succeeds, fails with what is not transient, or the policy ends; then the last error.
pub async fn retry<T, E, Operation, Attempt>(
    policy: RetryPolicy,
    is_transient: impl Fn(&E) -> bool,
    mut operation: Operation,
) -> Result<T, E>
where
    Operation: FnMut() -> Attempt,
    Attempt: Future<Output = Result<T, E>>,
{
    let mut waits = policy.waits();
    loop {
        let error = match operation().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !is_transient(&error) {
            return Err(error);
        }
        let Some(wait) = waits.next() else {
            return Err(error);
        };
        tokio::time::sleep(wait).await;
    }
}
