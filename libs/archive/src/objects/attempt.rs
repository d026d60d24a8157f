//! Slots, time-outs and retries around every request.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::time::timeout;

use super::ObjectStore;
use super::failure::{Failure, Operation, RequestError};
use super::retry::RetryPolicy;
use crate::Error;
use crate::error::Effect;

impl ObjectStore {
    /// Sends a request until it succeeds, fails with what a retry does not help, or the policy ends.
    pub(super) async fn request<T, Attempt, Answer>(
        &self,
        operation: Operation,
        key: &str,
        attempt: Attempt,
    ) -> Result<T, Error>
    where
        Attempt: Fn() -> Answer,
        Answer: Future<Output = Result<T, Box<RequestError>>>,
    {
        self.request_within(self.options().retry, operation, key, attempt)
            .await
    }

    /// The same with a policy of its own.
    pub(super) async fn request_within<T, Attempt, Answer>(
        &self,
        policy: RetryPolicy,
        operation: Operation,
        key: &str,
        attempt: Attempt,
    ) -> Result<T, Error>
    where
        Attempt: Fn() -> Answer,
        Answer: Future<Output = Result<T, Box<RequestError>>>,
    {
        let mut waits = policy.waits();
        let mut attempts = 0;
        let mut effect = Effect::CertainlyNot;
        loop {
            attempts += 1;
            let mut failed = match self.attempt(operation, key, attempt()).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            // An earlier attempt may have happened, whatever became of the last one.
            if failed.effect == Effect::Unknown {
                effect = Effect::Unknown;
            }
            let wait = match failed.failure.is_retryable() {
                true => waits.next(),
                false => None,
            };
            let Some(wait) = wait else {
                failed.effect = effect;
                failed.attempts = attempts;
                return Err(Error::Request(failed));
            };
            tracing::debug!(
                operation = operation.as_str(),
                key,
                attempts,
                reason = failed.reason,
                "request to the object store failed and is tried again"
            );
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt<T>(
        &self,
        operation: Operation,
        key: &str,
        answer: impl Future<Output = Result<T, Box<RequestError>>>,
    ) -> Result<T, Box<RequestError>> {
        let not_in_time = |reason| RequestError::new(operation, key, Failure::Unavailable, reason);
        // The wait for a slot does not count as time of the request, but it has a bound too.
        let bound = self.options().attempt_timeout;
        let Ok(Ok(_slot)) = timeout(bound, self.inner.slots.acquire()).await else {
            count(operation, "no_slot");
            let mut failed = not_in_time("no slot was free for the request");
            failed.effect = Effect::CertainlyNot;
            return Err(failed);
        };
        self.inner.requests.fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        let result = match timeout(bound, Box::pin(answer)).await {
            Ok(result) => result,
            Err(_) => Err(not_in_time("no answer within the time-out")),
        };
        metrics::histogram!("wakelog_archive_request_seconds", "operation" => operation.as_str())
            .record(begun.elapsed().as_secs_f64());
        count(
            operation,
            match &result {
                Ok(_) => "ok",
                Err(failed) => failed.failure.kind(),
            },
        );
        result
    }
}

fn count(operation: Operation, outcome: &'static str) {
    metrics::counter!(
        "wakelog_archive_requests_total",
        "operation" => operation.as_str(),
        "outcome" => outcome
    )
    .increment(1);
}

pub(super) fn count_bytes(direction: &'static str, bytes: u64) {
    metrics::counter!("wakelog_archive_bytes_total", "direction" => direction).increment(bytes);
}
