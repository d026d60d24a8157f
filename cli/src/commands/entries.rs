//! Reading a session's entries, part by part: each part once and in order, over broken connections too.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tonic::Status;
use wakelog_client::{Backoff, Connection};
use wakelog_proto::v1::{TailSessionRequest, TailSessionResponse};

use super::call::may_pass;
use crate::exit::Error;

/// For how long a broken read is tried again without anything new.
const RETRY_FOR: Duration = Duration::from_secs(120);

/// How long the server may take to begin.
const FIRST_ANSWER: Duration = Duration::from_secs(45);

/// Which entries are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entries<'a> {
    pub(crate) session_id: &'a str,
    /// The first one. 0: where the body as of now starts.
    pub(crate) from: u64,
    /// Whether to wait for more at their end.
    pub(crate) follow: bool,
}

impl Entries<'_> {
    /// Hands each part to `take`, until it breaks off or there are no more.
    pub(crate) async fn read(
        self,
        connection: &Connection,
        mut take: impl FnMut(&TailSessionResponse) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        let mut position = Position {
            entry_seq: self.from,
            part: 0,
        };
        let mut outage: Option<(Instant, Backoff)> = None;
        loop {
            let before = position;
            let status = match self.read_on(connection, &mut position, &mut take).await {
                Ok(()) => return Ok(()),
                Err(Failure::Here(error)) => return Err(error),
                Err(Failure::There(status)) => status,
            };
            let failed = || Error::from(status.clone()).at(connection.endpoint());
            if !may_pass(&status) {
                return Err(failed());
            }
            if position != before {
                outage = None;
            }
            let (since, backoff) = outage.get_or_insert_with(|| {
                (
                    Instant::now(),
                    Backoff::new(Duration::from_millis(200), Duration::from_secs(5)),
                )
            });
            let delay = backoff.next_delay();
            if since.elapsed() + delay > RETRY_FOR {
                return Err(failed());
            }
            tracing::warn!(
                reason = status.message(),
                delay_ms = delay.as_millis() as u64,
                "reading broke, trying again"
            );
            tokio::time::sleep(delay).await;
        }
    }

    async fn read_on(
        self,
        connection: &Connection,
        position: &mut Position,
        take: &mut impl FnMut(&TailSessionResponse) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Failure> {
        let request = TailSessionRequest {
            session_id: self.session_id.to_owned(),
            from_entry_seq: position.entry_seq,
            follow: self.follow,
        };
        let mut sessions = connection.sessions();
        let opened = tokio::time::timeout(FIRST_ANSWER, sessions.tail_session(request)).await;
        let opened = opened.map_err(|_| Failure::There(no_answer()))?;
        let mut parts = opened.map_err(Failure::There)?.into_inner();
        // Following waits as long as nothing is written; HTTP/2 pings tell if the server is gone.
        while let Some(part) = parts.message().await.map_err(Failure::There)? {
            if !position.moves_to(&part).map_err(Failure::Here)? {
                continue;
            }
            if take(&part).map_err(Failure::Here)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Worded as what it is, a connection that is of no use, and not as a refusal.
fn no_answer() -> Status {
    let mut status = Status::unavailable("no answer");
    status.set_source(Arc::new(std::io::Error::other(format!(
        "no answer within {FIRST_ANSWER:?}"
    ))));
    status
}

/// What ended a read.
enum Failure {
    Here(Error),
    There(Status),
}

/// The part that is due: a broken read goes on exactly there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    /// 0: whichever comes first.
    entry_seq: u64,
    part: u32,
}

impl Position {
    /// Whether the part is the one that is due; then the next one is. One that came before is passed over, one that leaves
    /// out another is an error (no-silent-gap).
    fn moves_to(&mut self, part: &TailSessionResponse) -> Result<bool, Error> {
        if self.entry_seq == 0 {
            self.entry_seq = part.entry_seq;
        }
        let (due, came) = ((self.entry_seq, self.part), (part.entry_seq, part.part));
        if came < due {
            return Ok(false);
        }
        if came > due {
            let (entry, number) = due;
            return Err(wakelog_client::Error::Protocol(format!(
                "entry {} part {} came where entry {entry} part {number} is due",
                part.entry_seq, part.part
            ))
            .into());
        }
        (self.entry_seq, self.part) = match part.last {
            true => (part.entry_seq.saturating_add(1), 0),
            false => (part.entry_seq, part.part.saturating_add(1)),
        };
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
