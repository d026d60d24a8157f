//! Reads of lifetimes, for ingest and the reconstructor.

use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};
use wakelog_model::{LifetimeId, SessionId, WriterNonce};

use crate::error::{During, convert};
use crate::numbers::from_bigint;
use crate::rows::{LifetimeCursor, LifetimeRow};
use crate::server_run::server_run;
use crate::{Error, Store};

/// Lifetimes that one query asks for, at most.
const CURSORS_PER_QUERY: usize = 1_000;
/// Lifetimes that are listed, at most.
const MAX_LISTED: u32 = 10_000;

const LIFETIME: During = During::Statement("lifetime");

macro_rules! select_lifetime {
    ($rest:literal) => {
        concat!(
            "SELECT l.session_id, l.generation, l.lifetime_id, l.request_id, l.base, l.body_start, l.writer_nonce,
                    l.applied_seq, l.status, (extract(epoch FROM l.bound_at) * 1000)::bigint AS bound_at_ms,
                    s.generation AS current_generation
             FROM session_lifetimes AS l JOIN agent_sessions AS s USING (session_id)
             WHERE l.session_id = $1 ",
            $rest
        )
    };
}

impl Store {
    /// The lifetimes that exist of those asked for, in no order, with what fences them and how far their partition of the topic
    /// is folded: what is below that is in them.
    pub async fn lifetime_cursors(
        &self,
        topic: &str,
        lifetimes: &[LifetimeId],
    ) -> Result<Vec<LifetimeCursor>, Error> {
        let mut cursors = Vec::with_capacity(lifetimes.len());
        for some in lifetimes.chunks(CURSORS_PER_QUERY) {
            let ids: Vec<&[u8]> = some.iter().map(|lifetime| lifetime.as_bytes()).collect();
            let mut connection = self.acquire().await?;
            let rows = sqlx::query(concat!(
                "SELECT l.lifetime_id, l.session_id, l.generation, s.generation AS session_generation, s.erased,
                        l.writer_nonce, l.applied_seq, l.status, coalesce(progress.next_offset, 0) AS next_offset,
                        coalesce(p.binding_generation, 0) AS binding_generation,
                        coalesce(extract(epoch FROM now() - p.binding_raised_at), 0)::double precision AS raised_age, ",
                server_run!(),
                " AS server_run
                 FROM session_lifetimes AS l
                 JOIN agent_sessions AS s USING (session_id)
                 LEFT JOIN session_pins AS p USING (session_id)
                 LEFT JOIN stream_progress AS progress ON progress.topic = $2 AND progress.partition = s.partition
                 WHERE l.lifetime_id = ANY($1)",
            ))
            .bind(ids)
            .bind(topic)
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| convert(LIFETIME, error))?;
            for row in &rows {
                cursors.push(cursor(row)?);
            }
        }
        Ok(cursors)
    }

    /// The newest lifetime of the session that this request bound.
    pub async fn lifetime_by_request(
        &self,
        session: SessionId,
        request_id: &str,
    ) -> Result<Option<LifetimeRow>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(select_lifetime!(
            "AND l.request_id = $2 ORDER BY l.generation DESC LIMIT 1"
        ))
        .bind(session.0)
        .bind(request_id)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| convert(LIFETIME, error))?
        .map(|row| lifetime_row(&row))
        .transpose()
    }

    /// The lifetime, if it is one of the session's.
    pub async fn lifetime_by_id(
        &self,
        session: SessionId,
        lifetime: LifetimeId,
    ) -> Result<Option<LifetimeRow>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(select_lifetime!("AND l.lifetime_id = $2"))
            .bind(session.0)
            .bind(lifetime.as_bytes())
            .fetch_optional(&mut *connection)
            .await
            .map_err(|error| convert(LIFETIME, error))?
            .map(|row| lifetime_row(&row))
            .transpose()
    }

    /// The newest lifetime of the session whose writer has this nonce.
    pub async fn lifetime_by_nonce(
        &self,
        session: SessionId,
        nonce: WriterNonce,
    ) -> Result<Option<LifetimeRow>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(select_lifetime!(
            "AND l.writer_nonce = $2 ORDER BY l.generation DESC LIMIT 1"
        ))
        .bind(session.0)
        .bind(nonce.as_bytes())
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| convert(LIFETIME, error))?
        .map(|row| lifetime_row(&row))
        .transpose()
    }

    /// The session's lifetimes, the newest first.
    pub async fn lifetimes(&self, session: SessionId, limit: u32) -> Result<Vec<LifetimeRow>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(select_lifetime!("ORDER BY l.generation DESC LIMIT $2"))
            .bind(session.0)
            .bind(i64::from(limit.min(MAX_LISTED)))
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| convert(LIFETIME, error))?
            .iter()
            .map(lifetime_row)
            .collect()
    }
}

/// Every lifetime of the session, by generation, as the connection's transaction sees them.
pub(crate) async fn all_lifetimes(
    connection: &mut PgConnection,
    session: SessionId,
) -> Result<Vec<LifetimeRow>, Error> {
    sqlx::query(select_lifetime!("ORDER BY l.generation"))
        .bind(session.0)
        .fetch_all(connection)
        .await
        .map_err(|error| convert(LIFETIME, error))?
        .iter()
        .map(lifetime_row)
        .collect()
}

fn lifetime_row(row: &PgRow) -> Result<LifetimeRow, Error> {
    let read = |error| convert(LIFETIME, error);
    Ok(LifetimeRow {
        session: SessionId(row.try_get("session_id").map_err(read)?),
        generation: number(row, "generation")?,
        lifetime_id: lifetime_id(row)?,
        request_id: row.try_get("request_id").map_err(read)?,
        base: number(row, "base")?,
        body_start: number(row, "body_start")?,
        nonce: nonce(row)?,
        applied_seq: number(row, "applied_seq")?,
        status: row.try_get("status").map_err(read)?,
        bound_at_ms: number(row, "bound_at_ms")?,
        current_generation: number(row, "current_generation")?,
    })
}

fn cursor(row: &PgRow) -> Result<LifetimeCursor, Error> {
    let read = |error| convert(LIFETIME, error);
    let raised_age: f64 = row.try_get("raised_age").map_err(read)?;
    Ok(LifetimeCursor {
        lifetime_id: lifetime_id(row)?,
        session: SessionId(row.try_get("session_id").map_err(read)?),
        generation: number(row, "generation")?,
        session_generation: number(row, "session_generation")?,
        erased: row.try_get("erased").map_err(read)?,
        nonce: nonce(row)?,
        applied_seq: number(row, "applied_seq")?,
        status: row.try_get("status").map_err(read)?,
        next_offset: row.try_get("next_offset").map_err(read)?,
        server_run: row.try_get("server_run").map_err(read)?,
        binding_generation: number(row, "binding_generation")?,
        // A clock that was set back makes it negative: as fresh as can be, which is the careful reading.
        binding_raised_age: Duration::try_from_secs_f64(raised_age).unwrap_or_default(),
    })
}

fn number(row: &PgRow, column: &'static str) -> Result<u64, Error> {
    from_bigint(
        column,
        row.try_get(column).map_err(|error| convert(LIFETIME, error))?,
    )
}

fn lifetime_id(row: &PgRow) -> Result<LifetimeId, Error> {
    let bytes: &[u8] = row
        .try_get("lifetime_id")
        .map_err(|error| convert(LIFETIME, error))?;
    LifetimeId::from_slice(bytes).map_err(|error| Error::Bug(format!("stored {error}")))
}

fn nonce(row: &PgRow) -> Result<Option<WriterNonce>, Error> {
    let bytes: Option<&[u8]> = row
        .try_get("writer_nonce")
        .map_err(|error| convert(LIFETIME, error))?;
    bytes
        .map(WriterNonce::from_slice)
        .transpose()
        .map_err(|error| Error::Bug(format!("stored {error}")))
}
