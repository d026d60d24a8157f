//! `wakelog tail`: a session's entries as they are applied.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use tonic::{Code, Status};
use wakelog_client::{Backoff, Connection};
use wakelog_contract::Exit;
use wakelog_proto::v1::{TailSessionRequest, TailSessionResponse};

use super::{connect, session_id};
use crate::args::TailArgs;
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{print_json, settle};

/// For how long a broken tail is tried again without anything new.
const RETRY_FOR: Duration = Duration::from_secs(120);

/// How long the server may take to begin.
const FIRST_ANSWER: Duration = Duration::from_secs(45);

pub(crate) async fn run(settings: &Settings, args: &TailArgs) -> Result<Exit, Error> {
    let session_id = session_id(&args.session)?;
    let connection = connect(settings).await?;
    let mut printed = Printed {
        next_entry_seq: args.from,
        next_part: 0,
        length: 0,
        json: args.json,
    };
    let mut outage: Option<(Instant, Backoff)> = None;
    loop {
        let before = (printed.next_entry_seq, printed.next_part);
        let Err(failure) = tail(&connection, &session_id, args.follow, &mut printed).await else {
            return Ok(Exit::Done);
        };
        let status = match failure {
            Failure::Here(error) => return Err(error),
            Failure::There(status) => status,
        };
        let may_pass = matches!(
            status.code(),
            Code::Unavailable | Code::ResourceExhausted | Code::Unknown
        );
        let failed = || Error::from(status.clone()).at(connection.endpoint());
        if !may_pass {
            return Err(failed());
        }
        if (printed.next_entry_seq, printed.next_part) != before {
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
            "tail broke, trying again"
        );
        tokio::time::sleep(delay).await;
    }
}

/// What ended a tail.
enum Failure {
    Here(Error),
    There(Status),
}

/// How far the output has come, so that a broken tail goes on exactly there.
struct Printed {
    next_entry_seq: u64,
    next_part: u32,
    length: u64,
    json: bool,
}

async fn tail(
    connection: &Connection,
    session_id: &str,
    follow: bool,
    printed: &mut Printed,
) -> Result<(), Failure> {
    let request = TailSessionRequest {
        session_id: session_id.to_owned(),
        from_entry_seq: printed.next_entry_seq,
        follow,
    };
    let mut sessions = connection.sessions();
    let opened = tokio::time::timeout(FIRST_ANSWER, sessions.tail_session(request)).await;
    let opened = opened.map_err(|_| Failure::There(no_answer()))?;
    let mut parts = opened.map_err(Failure::There)?.into_inner();
    // Following waits as long as nothing is written; HTTP/2 pings tell if the server is gone.
    while let Some(part) = parts.message().await.map_err(Failure::There)? {
        printed.take(&part).map_err(Failure::Here)?;
    }
    Ok(())
}

/// Worded as what it is, a connection that is of no use, and not as a refusal.
fn no_answer() -> Status {
    let mut status = Status::unavailable("no answer");
    status.set_source(Arc::new(std::io::Error::other(format!(
        "no answer within {FIRST_ANSWER:?}"
    ))));
    status
}

impl Printed {
    fn take(&mut self, part: &TailSessionResponse) -> Result<(), Error> {
        let was_printed = part.entry_seq == self.next_entry_seq && part.part < self.next_part;
        if part.entry_seq < self.next_entry_seq || was_printed {
            return Ok(());
        }
        if !self.json {
            let mut stdout = std::io::stdout().lock();
            settle(stdout.write_all(&part.content).and_then(|()| stdout.flush()))?;
        }
        self.length += part.content.len() as u64;
        if !part.last {
            (self.next_entry_seq, self.next_part) = (part.entry_seq, part.part + 1);
            return Ok(());
        }
        if self.json {
            print_json(&json!({
                "entry_seq": part.entry_seq,
                "checkpoint": part.checkpoint,
                "length": self.length,
            }))?;
        }
        (self.next_entry_seq, self.next_part, self.length) = (part.entry_seq + 1, 0, 0);
        Ok(())
    }
}
