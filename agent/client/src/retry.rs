//! How long to wait before the next try. The only place of this crate that knows the `backoff` package.

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;

/// Growing delays with jitter. It has no end of its own: whoever retries bounds the tries.
#[derive(Debug)]
pub struct Backoff {
    inner: ExponentialBackoff,
    longest: Duration,
}

impl Backoff {
    /// Delays from about `first` up to about `longest`, each about twice the one before.
    pub fn new(first: Duration, longest: Duration) -> Self {
        let inner = ExponentialBackoff {
            current_interval: first,
            initial_interval: first,
            randomization_factor: 0.3,
            multiplier: 2.0,
            max_interval: longest,
            max_elapsed_time: None,
            ..ExponentialBackoff::default()
        };
        Self { inner, longest }
    }

    /// The delay before the next try.
    pub fn next_delay(&mut self) -> Duration {
        self.inner.next_backoff().unwrap_or(self.longest)
    }

    /// Starts again with the first delay.
    pub fn reset(&mut self) {
        self.inner.reset();
    }
}
