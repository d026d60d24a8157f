//! Waits are bounded, and they end.

use super::*;

#[test]
fn waits_stay_below_bounds_that_double_and_end() {
    let policy = RetryPolicy {
        initial: Duration::from_millis(100),
        max_interval: Duration::from_millis(400),
        max_elapsed: Duration::from_secs(3600),
        max_attempts: 6,
    };
    let mut shortest = Duration::MAX;
    for _ in 0..200 {
        let waits: Vec<_> = policy.waits().collect();
        assert_eq!(waits.len(), 5);
        let slack = Duration::from_micros(1);
        for (wait, bound) in waits.iter().zip([100, 200, 400, 400, 400]) {
            assert!(*wait <= Duration::from_millis(bound) + slack, "{waits:?}");
        }
        shortest = waits.into_iter().min().unwrap_or_default().min(shortest);
    }
    assert!(
        shortest < Duration::from_millis(20),
        "no jitter down to zero: {shortest:?}"
    );
}

#[test]
fn no_wait_goes_beyond_the_total_time_or_the_attempts() {
    let no_time = RetryPolicy {
        initial: Duration::from_secs(1000),
        max_interval: Duration::from_secs(1000),
        max_elapsed: Duration::ZERO,
        max_attempts: 100,
    };
    assert_eq!(no_time.waits().count(), 0);
    assert_eq!(RetryPolicy::none().waits().count(), 0);
}
