//! How an engine that ends by itself becomes known.

use std::future::Future;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{Engine, Error};

#[derive(Debug, Clone)]
struct Failure {
    engine: Engine,
    reason: String,
}

/// The first failure of any engine; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Failures {
    first: watch::Sender<Option<Failure>>,
}

impl Failures {
    pub(crate) fn new() -> Self {
        Self {
            first: watch::Sender::new(None),
        }
    }

    pub(crate) fn report(&self, engine: Engine, reason: impl Into<String>) {
        let reason = reason.into();
        self.first.send_if_modified(|first| {
            if first.is_some() {
                // Whoever asks an engine that has ended meets that again.
                tracing::debug!(%engine, %reason, "embedded engine is ended");
                return false;
            }
            tracing::error!(%engine, %reason, "embedded engine ended");
            *first = Some(Failure { engine, reason });
            true
        });
    }

    /// Waits for a failure, for ever if there is none.
    pub(crate) async fn failed(&self) -> Error {
        let mut receiver = self.first.subscribe();
        let failure = receiver
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|first| first.clone());
        match failure {
            Some(Failure { engine, reason }) => Error::Ended { engine, reason },
            // The sender is in `self`, so the wait can't end without a value.
            None => std::future::pending().await,
        }
    }
}

/// Runs an engine's task; its end is a failure unless `stop` was asked for.
pub(crate) fn supervise(
    engine: Engine,
    stop: CancellationToken,
    failures: Failures,
    work: impl Future<Output = Result<(), String>> + Send + 'static,
) -> JoinHandle<()> {
    let work = tokio::spawn(work);
    tokio::spawn(async move {
        let reason = match work.await {
            Ok(Ok(())) => "its task came to an end".to_owned(),
            Ok(Err(reason)) => reason,
            Err(error) => format!("its task was ended: {error}"),
        };
        if !stop.is_cancelled() {
            failures.report(engine, reason);
        }
    })
}
