//! Waiting by asking again: with growing pauses, a bound, and an ear for the caller's leaving.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Error;

/// The first pause. What is waited for usually takes a few milliseconds, so pauses grow slowly: a wait ends at most a
/// quarter later than it could.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// The longest pause of a wait that somebody blocks on.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// One wait.
#[derive(Debug)]
pub(crate) struct Poll<'a> {
    what: &'static str,
    started: Instant,
    bound: Duration,
    next_pause: Duration,
    abandoned: &'a CancellationToken,
}

impl<'a> Poll<'a> {
    /// Starts to wait for `what`, at most for `bound`.
    pub(crate) fn new(what: &'static str, bound: Duration, abandoned: &'a CancellationToken) -> Self {
        Self {
            what,
            started: Instant::now(),
            bound,
            next_pause: FIRST_PAUSE,
            abandoned,
        }
    }

    /// How long the wait has lasted.
    pub(crate) fn waited(&self) -> Duration {
        self.started.elapsed()
    }

    /// Pauses before the next look. An error once the bound has passed or the caller has gone.
    pub(crate) async fn pause(&mut self) -> Result<(), Error> {
        let left = self.bound.saturating_sub(self.started.elapsed());
        if left.is_zero() {
            return Err(Error::NotInTime {
                what: self.what,
                waited: self.bound,
            });
        }
        tokio::select! {
            () = self.abandoned.cancelled() => return Err(Error::Abandoned),
            () = tokio::time::sleep(self.next_pause.min(left)) => {}
        }
        self.next_pause = longer(self.next_pause);
        Ok(())
    }

    /// The same after a look that may have failed: the failure is the answer only if there is no further look.
    pub(crate) async fn pause_after(&mut self, failure: Option<Error>) -> Result<(), Error> {
        match (self.pause().await, failure) {
            (Err(Error::NotInTime { .. }), Some(failure)) => Err(failure),
            (Ok(()), Some(failure)) => {
                tracing::debug!(what = self.what, error = %failure, "a look failed, will look again");
                Ok(())
            }
            (pause, _) => pause,
        }
    }
}

fn longer(pause: Duration) -> Duration {
    (pause * 5 / 4).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_ceiling() {
        assert_eq!(longer(FIRST_PAUSE), FIRST_PAUSE * 5 / 4);
        let mut pause = FIRST_PAUSE;
        for _ in 0..20 {
            assert!(longer(pause) >= pause);
            pause = longer(pause);
        }
        assert_eq!(pause, LONGEST_PAUSE);
    }

    #[tokio::test]
    async fn a_wait_ends_at_its_bound_and_not_before() {
        let abandoned = CancellationToken::new();
        let bound = Duration::from_millis(60);
        let mut poll = Poll::new("it", bound, &abandoned);
        let error = loop {
            if let Err(error) = poll.pause().await {
                break error;
            }
        };
        assert!(matches!(error, Error::NotInTime { what: "it", .. }), "{error}");
        assert!(poll.waited() >= bound);
    }

    #[tokio::test]
    async fn a_caller_that_left_is_waited_for_no_longer() {
        let abandoned = CancellationToken::new();
        let mut poll = Poll::new("it", Duration::from_secs(60), &abandoned);
        poll.next_pause = Duration::from_secs(60);
        abandoned.cancel();
        assert!(matches!(poll.pause().await, Err(Error::Abandoned)));
        assert!(poll.waited() < Duration::from_secs(30));
    }

    #[tokio::test]
    async fn a_failed_look_is_the_answer_only_at_the_bound() {
        let abandoned = CancellationToken::new();
        let mut poll = Poll::new("it", Duration::from_secs(60), &abandoned);
        poll.pause_after(Some(Error::TaskDied)).await.unwrap();
        poll.bound = Duration::ZERO;
        assert!(matches!(
            poll.pause_after(Some(Error::TaskDied)).await,
            Err(Error::TaskDied)
        ));
        assert!(matches!(
            poll.pause_after(None).await,
            Err(Error::NotInTime { .. })
        ));
    }
}
