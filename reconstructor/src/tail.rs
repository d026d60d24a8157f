//! Tailing a session: its complete entries, as they are applied.

use std::time::Duration;

use wakelog_model::SessionId;
use wakelog_proto::v1::{TailSessionRequest, TailSessionResponse};

use crate::body::Range;
use crate::core::{Core, body_start};
use crate::outlet::Outlet;
use crate::sequence::Rule;
use crate::{Error, validate};

/// The pause after entries came.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);

/// The pause of a session in which nothing happens.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A tail to hand out.
pub(crate) struct Tail {
    session: SessionId,
    account: String,
    next: u64,
    last: u64,
    follow: bool,
}

impl Core {
    /// Fixes where a tail starts, and where one that does not follow ends.
    pub(crate) async fn prepare_tail(
        &self,
        account: String,
        request: TailSessionRequest,
    ) -> Result<Tail, Error> {
        let session = validate::session_id(&request.session_id)?;
        if i64::try_from(request.from_entry_seq).is_err() {
            return Err(Error::Malformed("no entry has such a number".to_owned()));
        }
        let row = self.visible(session, &account).await?;
        let next = match request.from_entry_seq {
            0 => body_start(&row),
            from => from,
        };
        Ok(Tail {
            session,
            account,
            next,
            last: row.last_entry_seq,
            follow: request.follow,
        })
    }

    /// Hands out the tail. One that follows ends when its receiver has gone, the service shuts down, or the session is
    /// the caller's to see no more.
    pub(crate) async fn tail(&self, tail: Tail, outlet: &Outlet<TailSessionResponse>) -> Result<(), Error> {
        let Tail {
            session,
            account,
            mut next,
            mut last,
            follow,
        } = tail;
        let mut pause = SHORTEST_PAUSE;
        loop {
            if next <= last {
                self.send_entries(
                    Range {
                        session,
                        first: next,
                        last,
                    },
                    outlet,
                )
                .await?;
                next = last + 1;
                pause = SHORTEST_PAUSE;
            }
            if !follow {
                return Ok(());
            }
            tokio::select! {
                () = outlet.receiver_gone() => return Err(Error::Abandoned),
                () = self.stopping.cancelled() => return Err(Error::ShuttingDown),
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            last = self.visible(session, &account).await?.last_entry_seq;
        }
    }

    async fn send_entries(&self, range: Range, outlet: &Outlet<TailSessionResponse>) -> Result<(), Error> {
        let mut reader = self.parts(range, Rule::Entries);
        while let Some(part) = reader.next().await? {
            outlet
                .send(TailSessionResponse {
                    entry_seq: part.head.entry_seq,
                    checkpoint: part.head.checkpoint,
                    part: part.head.part,
                    last: part.head.last,
                    content: part.plain,
                })
                .await?;
        }
        Ok(())
    }
}
