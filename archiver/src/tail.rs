//! Looking at a session's hot tail, and moving out of it what is due.

use wakelog_model::SessionId;

use crate::Error;
use crate::due::{Due, due};
use crate::moving::{Moved, Then};
use crate::shared::Shared;

/// Runs that are moved for one look.
const RUNS: u32 = 100;

/// Looks in a row at one session. One that is written to faster than it can be archived comes again later.
const LOOKS: u32 = 20;

/// Whether there is more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing is due.
    Yes,
    /// There is more, or something came between.
    NotYet,
}

impl Shared {
    /// Moves out of the hot tail what is due, until nothing is.
    pub(crate) async fn tend(&self, session: SessionId) -> Result<Settled, Error> {
        for _ in 0..LOOKS {
            let tails = self.store.hot_tails(&[session]).await?;
            let Some(due) = tails.first().and_then(|tail| due(tail, self.options.valve_bytes)) else {
                return Ok(Settled::Yes);
            };
            let runs = match due {
                Due::Superseded { last } => self.store.hot_runs(session, 1, last, RUNS).await?,
                Due::Valve { keep_bytes } => {
                    let cut = self.store.valve_cut(session, keep_bytes).await?;
                    cut.into_iter().collect()
                }
            };
            if runs.is_empty() {
                // One entry alone may be larger than what the valve lets through: it stays.
                return Ok(Settled::Yes);
            }
            for run in runs {
                if self.move_run(session, run, Then::Prune).await? == Moved::Overtaken {
                    return Ok(Settled::NotYet);
                }
            }
        }
        Ok(Settled::NotYet)
    }
}
