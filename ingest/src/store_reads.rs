//! Reads of the hot tail and of the log that a request makes by itself.
//!
//! They run on tasks of their own: a caller that goes away must not cancel a query half-way on a pooled connection.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tonic::Status;
use wakelog_fold::SessionState;
use wakelog_store::LifetimeCursor;

use crate::facts::{Facts, Standing};
use crate::ingest::Ingest;
use crate::lane::Lane;
use crate::refusals;

/// What a read of one lifetime brought.
enum Read {
    There(LifetimeCursor),
    /// There is none, and this was folded before that was found.
    Absent {
        folded: i64,
    },
}

impl Ingest {
    /// Reads a lifetime's standing now.
    pub(crate) async fn read_standing(&self, lane: &Lane) -> Result<(), Status> {
        let asked_at = Instant::now();
        let _one_at_a_time = lane.reading.lock().await;
        if lane
            .look(|state| state.read_at())
            .is_some_and(|read_at| read_at >= asked_at)
        {
            return Ok(());
        }
        let read_at = Instant::now();
        let partition = lane.identity.partition;
        let known = self.board.known_next_offset(partition);
        let (store, topic) = (self.store.clone(), self.options.topic.clone());
        let lifetime = lane.identity.lifetime;
        let read = bounded(self.options.read_wait, "the hot tail", async move {
            let folded = async || -> Result<i64, wakelog_store::Error> {
                let progress = store.progress(&topic, partition).await?;
                Ok(progress.map_or(0, |progress| progress.next_offset))
            };
            // A process that is new must not take it for zero: a delivery of a log that was made again would look like one of the
            // log that was folded.
            let before = match known {
                Some(next_offset) => next_offset,
                None => folded().await?,
            };
            let cursors = store.lifetime_cursors(&topic, &[lifetime]).await?;
            if let Some(cursor) = cursors.into_iter().find(|cursor| cursor.lifetime_id == lifetime) {
                return Ok(Read::There(cursor));
            }
            // What was folded before it was looked for, unless the store has less of it by now.
            Ok::<_, wakelog_store::Error>(Read::Absent {
                folded: before.min(folded().await?),
            })
        });
        let facts = match read.await? {
            Read::There(cursor) => Facts {
                standing: Some(Standing::from(&cursor)),
                read_at,
                next_offset: cursor.next_offset,
                may_lack_binds: self.board.may_lack_binds(partition, &cursor, read_at),
            },
            Read::Absent { folded } => Facts {
                standing: None,
                read_at,
                next_offset: folded,
                may_lack_binds: self.board.went_back(partition, folded),
            },
        };
        // Whether a bind has lapsed is the watcher's business.
        lane.observe(facts);
        Ok(())
    }

    /// Reads the session's folded state now.
    pub(crate) async fn read_session_state(&self, lane: &Lane) -> Result<Option<Arc<SessionState>>, Status> {
        let store = self.store.clone();
        let session = lane.identity.session;
        let read = bounded(self.options.read_wait, "the hot tail", async move {
            store.session_state(session).await
        });
        let Some(bytes) = read.await? else {
            return Ok(None);
        };
        let state = SessionState::decode(&bytes).map_err(|error| {
            tracing::error!(%session, %error, "stored session state does not decode");
            refusals::corrupt("the session's stored state does not decode")
        })?;
        Ok(Some(Arc::new(state)))
    }

    /// Reads the end of a lifetime's partition now.
    pub(crate) async fn read_partition_end(&self, partition: i32) -> Result<i64, Status> {
        let reader = self.reader.clone();
        let watermarks = bounded(self.options.read_wait, "the log", async move {
            reader.watermarks(partition).await
        });
        Ok(watermarks.await?.high)
    }
}

async fn bounded<T, E>(
    bound: Duration,
    what: &'static str,
    read: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Status>
where
    T: Send + 'static,
    E: std::fmt::Display + Send + 'static,
{
    let failed = || refusals::unavailable(&format!("{what} did not answer"));
    match timeout(bound, tokio::spawn(read)).await {
        Ok(Ok(Ok(found))) => Ok(found),
        Ok(Ok(Err(error))) => {
            tracing::warn!(what, %error, "read failed");
            Err(failed())
        }
        Ok(Err(error)) => {
            tracing::error!(what, %error, "read did not end");
            Err(failed())
        }
        Err(_) => {
            tracing::warn!(what, ?bound, "read timed out");
            Err(failed())
        }
    }
}
