//! What the hot tail still holds of a session, and what of it may go.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;
use wakelog_model::SessionId;

use super::rows::HotTail;
use super::{first_id, number};
use crate::error::{During, convert};
use crate::numbers::{clamp_bigint, from_bigint};
use crate::{Error, Store};

/// Sessions that one query asks for, at most.
const SESSIONS_PER_QUERY: usize = 1_000;

const HOT_TAIL: During = During::Statement("hot tail");

impl Store {
    /// What decides about the archive of those of the sessions that exist, in no order.
    pub async fn hot_tails(&self, sessions: &[SessionId]) -> Result<Vec<HotTail>, Error> {
        let mut tails = Vec::with_capacity(sessions.len());
        for some in sessions.chunks(SESSIONS_PER_QUERY) {
            let ids: Vec<Uuid> = some.iter().map(|session| session.0).collect();
            let mut connection = self.acquire().await?;
            let rows = sqlx::query(
                "SELECT session_id, partition, erased, last_entry_seq, last_checkpoint_seq,
                        EXISTS (SELECT FROM agent_session_transcript_entries AS superseded
                                WHERE superseded.session_id = session.session_id
                                  AND superseded.entry_seq < session.last_checkpoint_seq) AS superseded_rows,
                        (SELECT coalesce(sum(delta.plain_length), 0)::bigint
                         FROM agent_session_transcript_entries AS delta
                         WHERE delta.session_id = session.session_id
                           AND delta.entry_seq > session.last_checkpoint_seq
                           AND delta.entry_seq <= session.last_entry_seq) AS delta_bytes
                 FROM agent_sessions AS session WHERE session_id = ANY($1)",
            )
            .bind(ids)
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| convert(HOT_TAIL, error))?;
            for row in &rows {
                tails.push(hot_tail(row)?);
            }
        }
        Ok(tails)
    }

    /// The sessions of these partitions by id, those after `after`: one page of a sweep. Erased ones as well.
    pub async fn sessions_of_partitions(
        &self,
        partitions: &[i32],
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<SessionId>, Error> {
        let Some(from) = first_id(after) else {
            return Ok(Vec::new());
        };
        let mut connection = self.acquire().await?;
        // A short scan of the index for each partition, so that a page costs no more than its rows of each.
        let ids: Vec<Uuid> = sqlx::query_scalar(
            "SELECT session_id
             FROM (SELECT DISTINCT unnest($1::int[]) AS partition) AS asked
             CROSS JOIN LATERAL (SELECT session_id FROM agent_sessions AS stored
                                 WHERE stored.partition = asked.partition AND stored.session_id >= $2
                                 ORDER BY session_id LIMIT $3) AS page
             ORDER BY session_id LIMIT $3",
        )
        .bind(partitions)
        .bind(from)
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(HOT_TAIL, error))?;
        Ok(ids.into_iter().map(SessionId).collect())
    }

    /// The longest runs of complete entries without a hole that the hot tail holds between `first` and `last`, in
    /// order, as first and last entry; `limit` of them, at most. A safety valve or another archiver leaves holes.
    pub async fn hot_runs(
        &self,
        session: SessionId,
        first: u64,
        last: u64,
        limit: u32,
    ) -> Result<Vec<(u64, u64)>, Error> {
        let mut connection = self.acquire().await?;
        // Entries of a run have the same distance to their number in the list. Each complete entry has a part 0, and
        // the key alone tells that, so no row is read.
        let runs: Vec<(i64, i64)> = sqlx::query_as(
            "SELECT min(entry_seq), max(entry_seq)
             FROM (SELECT entry_seq, entry_seq - row_number() OVER (ORDER BY entry_seq) AS run
                   FROM agent_session_transcript_entries
                   WHERE session_id = $1 AND part = 0 AND entry_seq >= $2
                     AND entry_seq <= least($3, (SELECT last_entry_seq FROM agent_sessions WHERE session_id = $1))
                  ) AS numbered
             GROUP BY run ORDER BY run LIMIT $4",
        )
        .bind(session.0)
        .bind(clamp_bigint(first))
        .bind(clamp_bigint(last))
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(HOT_TAIL, error))?;
        runs.into_iter().map(entries).collect()
    }

    /// The oldest deltas after the last checkpoint that have to go so that what remains of them in the hot tail is no
    /// more than `keep_bytes` plain bytes, as first and last entry. `None`: nothing has to.
    ///
    /// The last complete entry stays whatever its length. Ends at the first hole: ask again for what comes after it.
    pub async fn valve_cut(&self, session: SessionId, keep_bytes: u64) -> Result<Option<(u64, u64)>, Error> {
        let mut connection = self.acquire().await?;
        // An entry has to go if it and what comes after it is too much to keep.
        let (first, last): (Option<i64>, Option<i64>) = sqlx::query_as(
            "WITH deltas AS (
                 SELECT entry_seq, sum(plain_length)::bigint AS bytes, entry_seq = session.last_entry_seq AS newest
                 FROM agent_sessions AS session JOIN agent_session_transcript_entries AS delta USING (session_id)
                 WHERE session_id = $1 AND NOT erased
                   AND entry_seq > last_checkpoint_seq AND entry_seq <= last_entry_seq
                 GROUP BY entry_seq, newest
             ), counted AS (
                 SELECT entry_seq, newest,
                        sum(bytes) OVER (ORDER BY entry_seq DESC ROWS UNBOUNDED PRECEDING) AS from_here_on,
                        entry_seq - row_number() OVER (ORDER BY entry_seq) AS run
                 FROM deltas
             )
             SELECT min(entry_seq), max(entry_seq) FROM counted
             WHERE from_here_on > $2 AND NOT newest AND run = (SELECT min(run) FROM counted)",
        )
        .bind(session.0)
        .bind(clamp_bigint(keep_bytes))
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| convert(HOT_TAIL, error))?;
        first.zip(last).map(entries).transpose()
    }
}

fn entries((first, last): (i64, i64)) -> Result<(u64, u64), Error> {
    Ok((from_bigint("entry_seq", first)?, from_bigint("entry_seq", last)?))
}

fn hot_tail(row: &PgRow) -> Result<HotTail, Error> {
    let read = |error| convert(HOT_TAIL, error);
    Ok(HotTail {
        session: SessionId(row.try_get("session_id").map_err(read)?),
        partition: row.try_get("partition").map_err(read)?,
        erased: row.try_get("erased").map_err(read)?,
        last_entry_seq: number(row, "last_entry_seq", HOT_TAIL)?,
        last_checkpoint_seq: number(row, "last_checkpoint_seq", HOT_TAIL)?,
        superseded_rows: row.try_get("superseded_rows").map_err(read)?,
        delta_bytes: number(row, "delta_bytes", HOT_TAIL)?,
    })
}
