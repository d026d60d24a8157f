//! When a call is made again, and at which server.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tonic::{Code, Response, Status};
use wakelog_client::{Backoff, Connection, Sessions};

use crate::exit::Error;

/// How long one call may take. Longer than a service waits for a bind to be applied.
const CALL_TIMEOUT: Duration = Duration::from_secs(45);

/// For how long a call is tried again while the server says that it can't answer now.
const RETRY_FOR: Duration = Duration::from_secs(30);

/// Makes a call, again while the server says that it can't answer now. Only for calls that may be repeated.
pub(crate) async fn call<T, F>(
    connection: &Connection,
    what: &str,
    attempt: impl FnMut(Sessions) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<Response<T>, Status>>,
{
    let server = (connection.endpoint().to_owned(), connection.sessions());
    call_in_turn(vec![server], what, attempt).await
}

/// The same, at every server of the list in turn.
pub(crate) async fn call_any<T, F>(
    connection: &Connection,
    what: &str,
    attempt: impl FnMut(Sessions) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<Response<T>, Status>>,
{
    call_in_turn(connection.all_sessions(), what, attempt).await
}

async fn call_in_turn<S, T, F>(
    servers: Vec<(String, S)>,
    what: &str,
    mut attempt: impl FnMut(S) -> F,
) -> Result<T, Error>
where
    S: Clone,
    F: Future<Output = Result<Response<T>, Status>>,
{
    let started = Instant::now();
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(3));
    // What each server said last.
    let mut failures = BTreeMap::new();
    let mut next = 0;
    loop {
        let (endpoint, service) = &servers[next];
        let answer = tokio::time::timeout(CALL_TIMEOUT, attempt(service.clone())).await;
        let (mut error, may_pass, asked) = match answer {
            Ok(Ok(response)) => return Ok(response.into_inner()),
            Ok(Err(status)) => {
                let (may_pass, asked) = (may_pass(&status), delay_asked_for(&status));
                (Error::from(status).at(endpoint), may_pass, asked)
            }
            Err(_) => (no_answer().at(endpoint), true, Duration::ZERO),
        };
        failures.insert(next, error.message.clone());
        next = (next + 1) % servers.len();
        if may_pass && next != 0 {
            // The next one may be well: there is nothing to wait for.
            continue;
        }
        let delay = backoff.next_delay().max(asked);
        if !may_pass || started.elapsed() + delay > RETRY_FOR {
            if may_pass {
                error.message = failures.into_values().collect::<Vec<_>>().join("; ");
            }
            return Err(error.while_doing(what));
        }
        tracing::info!(
            what,
            delay_ms = delay.as_millis() as u64,
            reason = error.message,
            "trying again"
        );
        tokio::time::sleep(delay).await;
    }
}

/// Whether another try, here or at another server, may go well.
pub(crate) fn may_pass(status: &Status) -> bool {
    // A connection that broke is reported as unknown, or as cancelled if it did so before the call was on its way.
    matches!(
        status.code(),
        Code::Unavailable | Code::ResourceExhausted | Code::Unknown | Code::Cancelled
    )
}

fn delay_asked_for(status: &Status) -> Duration {
    let refusal = wakelog_contract::refusal_of(status);
    Duration::from_millis(refusal.map_or(0, |refusal| refusal.retry_delay_ms))
}

fn no_answer() -> Error {
    Error::dependency(format!("no answer within {CALL_TIMEOUT:?}"))
        .or_hint("`wakelog doctor` says what is away")
}

#[cfg(test)]
mod tests;
