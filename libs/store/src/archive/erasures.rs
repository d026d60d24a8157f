//! What was swept of an erased session.

use std::time::Duration;

use uuid::Uuid;
use wakelog_model::SessionId;

use super::rows::DueErasure;
use super::{commit, lock_session, seconds};
use crate::error::{During, convert};
use crate::numbers::from_integer;
use crate::{Error, Store};

const SWEEP: &str = "sweep of an erased session";
const DUE: During = During::Statement("due erasures");

/// One table after the other, in the order in which the other transactions lock them.
const DELETES: [&str; 3] = [
    "DELETE FROM archive_staged_objects WHERE session_id = $1",
    "DELETE FROM agent_session_archive_segments WHERE session_id = $1",
    "DELETE FROM session_archive_snapshots WHERE session_id = $1",
];

impl Store {
    /// The erased sessions of these partitions whose objects are to be deleted, `limit` of them: those that were never
    /// swept first, then those that were swept fewer than `max_sweeps` times and last longer ago than `resweep_after`.
    pub async fn due_erasures(
        &self,
        partitions: &[i32],
        resweep_after: Duration,
        max_sweeps: u32,
        limit: u32,
    ) -> Result<Vec<DueErasure>, Error> {
        let mut connection = self.acquire().await?;
        let rows: Vec<(Uuid, i32, i32)> = sqlx::query_as(
            "SELECT session_id, partition, coalesce(sweeps, 0)
             FROM agent_sessions LEFT JOIN session_archive_erasures AS swept USING (session_id)
             WHERE erased AND partition = ANY($1)
               AND (sweeps IS NULL OR (sweeps < $3 AND last_swept_at <= now() - make_interval(secs => $2)))
             ORDER BY last_swept_at NULLS FIRST, session_id LIMIT $4",
        )
        .bind(partitions)
        .bind(seconds(resweep_after))
        .bind(i64::from(max_sweeps))
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(DUE, error))?;
        rows.into_iter()
            .map(|(session, partition, sweeps)| {
                Ok(DueErasure {
                    session: SessionId(session),
                    partition,
                    sweeps: from_integer("sweeps", sweeps)?,
                })
            })
            .collect()
    }

    /// Records that the objects of an erased session were deleted, and forgets them: the rows of its manifest, of
    /// staged objects and of states. They stay until then, so that a sweep knows what there was.
    ///
    /// [`Error::ArchiveCommitUnknown`]: sweep again, or leave it: a session that was not recorded stays due.
    pub async fn record_sweep(&self, session: SessionId) -> Result<(), Error> {
        const DURING: During = During::Archive(SWEEP);
        let mut transaction = self.begin().await?;
        let locked = lock_session(&mut transaction, session, DURING).await?;
        if !locked.erased {
            return Err(Error::Bug(format!(
                "session {session} was swept although it is not erased"
            )));
        }
        for delete in DELETES {
            sqlx::query(delete)
                .bind(session.0)
                .execute(&mut *transaction)
                .await
                .map_err(|error| convert(DURING, error))?;
        }
        sqlx::query(
            "INSERT INTO session_archive_erasures AS stored (session_id, sweeps, last_swept_at)
             VALUES ($1, 1, now())
             ON CONFLICT (session_id) DO UPDATE SET sweeps = stored.sweeps + 1, last_swept_at = now()",
        )
        .bind(session.0)
        .execute(&mut *transaction)
        .await
        .map_err(|error| convert(DURING, error))?;
        commit(transaction, SWEEP).await
    }
}
