//! Reads of entries, for the reconstructor.

use bytes::Bytes;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use wakelog_model::{Digest16, SessionId};

use crate::error::{During, convert};
use crate::numbers::{clamp_bigint, count, from_bigint, from_integer};
use crate::rows::PartRow;
use crate::{Error, Store};

/// Parts of one page, at most, however small they are.
const MAX_PAGE_ROWS: i64 = 1_024;

const ENTRY: During = During::Statement("entry");

impl Store {
    /// The parts after `after` up to the entry `last_entry_seq`, by entry and part: as many as fit into `max_bytes` of
    /// stored bodies, at least one if there is any, and never more than 1,024.
    ///
    /// One query and no cursor: nothing is held between two pages. The server adds up the lengths, so no body that
    /// does not fit is read or sent.
    pub async fn parts_page(
        &self,
        session: SessionId,
        after: Option<(u64, u32)>,
        last_entry_seq: u64,
        max_bytes: usize,
    ) -> Result<Vec<PartRow>, Error> {
        let (after_entry, after_part) = after.unwrap_or((0, 0));
        let mut connection = self.acquire().await?;
        sqlx::query(
            "SELECT session_id, entry_seq, part, last, checkpoint, generation, encoding, plain_length, part_digest, body
             FROM (SELECT page.*,
                          row_number() OVER running AS row_of_page,
                          sum(octet_length(body)) OVER running AS bytes_so_far
                   FROM (SELECT * FROM agent_session_transcript_entries
                         WHERE session_id = $1 AND (entry_seq, part) > ($2, $3) AND entry_seq <= $4
                         ORDER BY entry_seq, part LIMIT $5) AS page
                   WINDOW running AS (ORDER BY entry_seq, part ROWS UNBOUNDED PRECEDING)) AS counted
             WHERE row_of_page = 1 OR bytes_so_far <= $6
             ORDER BY entry_seq, part",
        )
        .bind(session.0)
        .bind(clamp_bigint(after_entry))
        .bind(i32::try_from(after_part).unwrap_or(i32::MAX))
        .bind(clamp_bigint(last_entry_seq))
        .bind(MAX_PAGE_ROWS)
        .bind(clamp_bigint(count(max_bytes)))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(ENTRY, error))?
        .iter()
        .map(part_row)
        .collect()
    }

    /// Plain bytes of the stored parts of the entries from `first` to `last`.
    pub async fn body_length(&self, session: SessionId, first: u64, last: u64) -> Result<u64, Error> {
        let mut connection = self.acquire().await?;
        let length: i64 = sqlx::query_scalar(
            "SELECT coalesce(sum(plain_length), 0)::bigint FROM agent_session_transcript_entries
             WHERE session_id = $1 AND entry_seq BETWEEN $2 AND $3",
        )
        .bind(session.0)
        .bind(clamp_bigint(first))
        .bind(clamp_bigint(last))
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| convert(ENTRY, error))?;
        from_bigint("body length", length)
    }
}

fn part_row(row: &PgRow) -> Result<PartRow, Error> {
    let read = |error| convert(ENTRY, error);
    let digest: &[u8] = row.try_get("part_digest").map_err(read)?;
    let body: Vec<u8> = row.try_get("body").map_err(read)?;
    Ok(PartRow {
        session: SessionId(row.try_get("session_id").map_err(read)?),
        entry_seq: from_bigint("entry_seq", row.try_get("entry_seq").map_err(read)?)?,
        part: from_integer("part", row.try_get("part").map_err(read)?)?,
        last: row.try_get("last").map_err(read)?,
        checkpoint: row.try_get("checkpoint").map_err(read)?,
        generation: from_bigint("generation", row.try_get("generation").map_err(read)?)?,
        encoding: row.try_get::<i16, _>("encoding").map_err(read)?.into(),
        plain_length: from_integer("plain_length", row.try_get("plain_length").map_err(read)?)?,
        part_digest: Digest16::from_slice(digest)
            .ok_or_else(|| Error::Bug(format!("stored part digest has {} bytes", digest.len())))?,
        body: Bytes::from(body),
    })
}
