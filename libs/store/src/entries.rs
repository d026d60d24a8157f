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
const MAX_PAGE_ROWS: i64 = 4_096;

const ENTRY: During = During::Statement("entry");

macro_rules! part_columns {
    () => {
        "session_id, entry_seq, part, last, checkpoint, generation, encoding, plain_length, part_digest, body"
    };
}

/// The rows of the next page, if they all fit.
macro_rules! page {
    () => {
        "FROM agent_session_transcript_entries
         WHERE session_id = $1 AND (entry_seq, part) > ($2, $3) AND entry_seq <= $4
         ORDER BY entry_seq, part LIMIT $5"
    };
}

impl Store {
    /// The parts after `after` up to the entry `last_entry_seq`, by entry and part: as many as fit into `max_bytes` of
    /// plain bytes, at least one if there is any, and never more than 4,096.
    ///
    /// No cursor: nothing is held between two pages. The server adds up the lengths, so no body that does not fit is
    /// read or sent. It does so for the page as a whole first, which costs a tenth of adding them up row by row; what is
    /// stored never changes, so a page that fits then still does. Plain bytes and not stored ones: whoever decodes a page
    /// must know what it can grow to.
    pub async fn parts_page(
        &self,
        session: SessionId,
        after: Option<(u64, u32)>,
        last_entry_seq: u64,
        max_bytes: usize,
    ) -> Result<Vec<PartRow>, Error> {
        let (after_entry, after_part) = after.unwrap_or((0, 0));
        let (after_entry, last_entry) = (clamp_bigint(after_entry), clamp_bigint(last_entry_seq));
        let after_part = i32::try_from(after_part).unwrap_or(i32::MAX);
        let max_bytes = clamp_bigint(count(max_bytes));
        let mut connection = self.acquire().await?;
        let whole_page: i64 = sqlx::query_scalar(concat!(
            "SELECT coalesce(sum(plain_length), 0)::bigint FROM (SELECT plain_length ",
            page!(),
            ") AS page"
        ))
        .bind(session.0)
        .bind(after_entry)
        .bind(after_part)
        .bind(last_entry)
        .bind(MAX_PAGE_ROWS)
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| convert(ENTRY, error))?;
        let fits = whole_page <= max_bytes;
        let query = match fits {
            true => sqlx::query(concat!("SELECT ", part_columns!(), " ", page!())),
            false => sqlx::query(concat!(
                "SELECT ",
                part_columns!(),
                " FROM (SELECT page.*,
                          row_number() OVER running AS row_of_page,
                          sum(plain_length) OVER running AS bytes_so_far
                   FROM (SELECT * ",
                page!(),
                ") AS page
                   WINDOW running AS (ORDER BY entry_seq, part ROWS UNBOUNDED PRECEDING)) AS counted
                 WHERE row_of_page = 1 OR bytes_so_far <= $6
                 ORDER BY entry_seq, part"
            )),
        };
        let query = query
            .bind(session.0)
            .bind(after_entry)
            .bind(after_part)
            .bind(last_entry)
            .bind(MAX_PAGE_ROWS);
        let query = match fits {
            true => query,
            false => query.bind(max_bytes),
        };
        query
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| convert(ENTRY, error))?
            .iter()
            .map(part_row)
            .collect()
    }

    /// Plain bytes of the body from `first` to `last`: of the parts in the hot tail, and of the deltas that the safety valve
    /// has moved to the archive. After a rebuild segments may overlap, and then it says about how many.
    pub async fn body_length(&self, session: SessionId, first: u64, last: u64) -> Result<u64, Error> {
        let mut connection = self.acquire().await?;
        let length: i64 = sqlx::query_scalar(
            "SELECT (coalesce((SELECT sum(plain_length) FROM agent_session_transcript_entries
                               WHERE session_id = $1 AND entry_seq BETWEEN $2 AND $3), 0)
                     + coalesce((SELECT sum(plain_bytes) FROM agent_session_archive_segments
                                 WHERE session_id = $1 AND kind = 'safety_valve'
                                   AND min_entry_seq >= $2 AND max_entry_seq <= $3), 0))::bigint",
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
