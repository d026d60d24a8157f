//! A streamed `SELECT` of what a resume reads.

use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use sqlx::{PgPool, Row as _};
use uuid::Uuid;

use crate::Error;

/// What a raw read took and gave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawRead {
    /// From the query to its first row.
    pub(crate) first_row: Duration,
    /// From the query to its last row.
    pub(crate) whole: Duration,
    /// Plain bytes of the rows.
    pub(crate) plain_length: u64,
}

/// Reads a session's rows in order, all columns that a resume uses, and drops them.
pub(crate) async fn read(pool: &PgPool, session: &str) -> Result<RawRead, Error> {
    let session = Uuid::parse_str(session).map_err(|error| Error::Wrong(error.to_string()))?;
    let mut connection = pool.acquire().await?;
    let started = Instant::now();
    let mut rows = sqlx::query(
        "SELECT session_id, entry_seq, part, last, checkpoint, generation, encoding, plain_length, part_digest, body
         FROM agent_session_transcript_entries WHERE session_id = $1 ORDER BY entry_seq, part",
    )
    .bind(session)
    .fetch(&mut *connection);
    let mut first_row = None;
    let mut plain_length = 0;
    while let Some(row) = rows.try_next().await? {
        first_row.get_or_insert_with(|| started.elapsed());
        let body: &[u8] = row.try_get("body")?;
        std::hint::black_box(body);
        plain_length += row.try_get::<i32, _>("plain_length")? as u64;
    }
    let whole = started.elapsed();
    Ok(RawRead {
        first_row: first_row.ok_or_else(|| Error::Wrong("the session has no rows".to_owned()))?,
        whole,
        plain_length,
    })
}
