//! What happens when a service ends by itself: it is started again, with growing pauses, for as long as the process lives;
//! meanwhile the process is not ready.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wakelog_client::Backoff;

use super::health::{Health, PartState};
use crate::exit::Error;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// A run that lasted so long was a good one: the next pause is the first again.
const GOOD_RUN: Duration = Duration::from_secs(60);

/// Runs what `start` makes until `shutdown`, and again whenever it ends before that. Returns the outcome of the run that
/// the shutdown ended.
pub(crate) async fn supervise<F>(
    name: &'static str,
    health: Health,
    shutdown: CancellationToken,
    mut start: impl FnMut(CancellationToken) -> F,
) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let mut pauses = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    loop {
        let started = Instant::now();
        health.set(name, PartState::Running);
        // A task of its own, so that a panic ends this run and not the process.
        let mut run = tokio::spawn(start(shutdown.child_token()));
        let ended = tokio::select! {
            ended = &mut run => ended,
            () = shutdown.cancelled() => {
                health.set(name, PartState::Stopping);
                run.await
            }
        };
        let outcome = ended.unwrap_or_else(|error| Err(Error::failed(format!("{name} died: {error}"))));
        if shutdown.is_cancelled() {
            health.set(name, PartState::Stopping);
            return outcome;
        }
        let reason = match outcome {
            Ok(()) => "it ended by itself".to_owned(),
            Err(error) => error.message,
        };
        if started.elapsed() >= GOOD_RUN {
            pauses.reset();
        }
        let pause = pauses.next_delay();
        tracing::error!(
            service = name,
            reason,
            pause_ms = pause.as_millis() as u64,
            "service ended, starting it again"
        );
        metrics::counter!("wakelog_up_service_restarts_total", "service" => name).increment(1);
        health.set(name, PartState::Restarting { reason });
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
