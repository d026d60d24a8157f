//! How a process finds out that its database or its log is away: it asks each of them for a trifle, every few seconds.
//!
//! One question at a time is under way to each, and no connection is held between two of them. A topic that does not exist
//! any more is no good answer.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use wakelog_store::Store;
use wakelog_stream::LogReader;

use super::health::Health;
use crate::exit::with_sources;

const DATABASE: &str = "database";
const LOG: &str = "log";

/// How long after an answer the next question is asked.
const INTERVAL: Duration = Duration::from_secs(2);

/// How long an answer may take before it is called missing. With the interval less than what health lets pass, so that a slow
/// dependency is not taken for one that is away.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a question may be under way. Longer than what the store and the broker client wait by themselves; it ends what
/// a connection that broke in silence would keep for ever.
const LONGEST_QUESTION: Duration = Duration::from_secs(60);

/// Asks until the guard is dropped.
pub(crate) fn watch(health: &Health, store: &Store, reader: &LogReader, topic: &str) -> DropGuard {
    let stop = CancellationToken::new();
    let (store, reader, topic) = (store.clone(), reader.clone(), topic.to_owned());
    let database = ask_for_ever(health.clone(), DATABASE, move || {
        let (store, topic) = (store.clone(), topic.clone());
        async move { outcome(store.progress_of_topic(&topic).await) }
    });
    let log = ask_for_ever(health.clone(), LOG, move || {
        let reader = reader.clone();
        async move { outcome(reader.partition_count().await) }
    });
    let both = async { tokio::join!(database, log) };
    tokio::spawn(stop.clone().run_until_cancelled_owned(both));
    stop.drop_guard()
}

fn outcome<T, E: std::error::Error>(answer: Result<T, E>) -> Result<(), String> {
    answer.map(drop).map_err(|error| with_sources(&error))
}

async fn ask_for_ever<F>(health: Health, dependency: &'static str, ask: impl Fn() -> F) -> Infallible
where
    F: Future<Output = Result<(), String>> + Send + 'static,
{
    health.answered(dependency);
    loop {
        // A task of its own: a query must not be cancelled half-way on a pooled connection.
        let mut asking = tokio::spawn(timeout(LONGEST_QUESTION, ask()));
        let answer = match timeout(PATIENCE, &mut asking).await {
            Ok(answer) => answer,
            Err(_) => {
                health.in_trouble(dependency, format!("no answer within {PATIENCE:?}"));
                asking.await
            }
        };
        match answer {
            Ok(Ok(Ok(()))) => health.answered(dependency),
            Ok(Ok(Err(trouble))) => health.in_trouble(dependency, trouble),
            Ok(Err(_)) => health.in_trouble(dependency, format!("no answer within {LONGEST_QUESTION:?}")),
            Err(died) => health.in_trouble(dependency, format!("the question died: {died}")),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests;
