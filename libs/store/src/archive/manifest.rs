//! Rows of segments: written and read.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};
use uuid::Uuid;
use wakelog_model::SessionId;

use super::number;
use super::rows::{ArchivedObject, SegmentKind, SegmentRow};
use crate::error::{During, convert};
use crate::numbers::{clamp_bigint, to_bigint};
use crate::{Error, Store};

/// Segments of one page, at most.
const MAX_PAGE: u32 = 1_000;

const SEGMENT: During = During::Statement("segment");

macro_rules! segment_columns {
    () => {
        "session_id, object_key, min_entry_seq, max_entry_seq, kind, entries, plain_bytes, object_bytes,
         object_digest, (extract(epoch FROM archived_at) * 1000)::bigint AS archived_at_ms"
    };
}

/// What becomes of a row that a snapshot wrote for the same object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnRecordedCopy {
    /// It stays.
    Keep,
    /// It takes the new kind: from now on the object is more than a copy.
    TakeOver,
}

impl Store {
    /// The segments that hold entries between `first` and `last`, of every kind, by first entry, last entry and key;
    /// `limit` of them and never more than 1,000. There may be several of one entry. What comes after the last of a
    /// full page: ask again with the first entry that is still missing.
    pub async fn segments_overlapping(
        &self,
        session: SessionId,
        first: u64,
        last: u64,
        limit: u32,
    ) -> Result<Vec<SegmentRow>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(concat!(
            "SELECT ",
            segment_columns!(),
            " FROM agent_session_archive_segments
             WHERE session_id = $1 AND max_entry_seq >= $2 AND min_entry_seq <= $3
             ORDER BY min_entry_seq, max_entry_seq, object_key LIMIT $4"
        ))
        .bind(session.0)
        .bind(clamp_bigint(first))
        .bind(clamp_bigint(last))
        .bind(i64::from(limit.min(MAX_PAGE)))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(SEGMENT, error))?
        .iter()
        .map(segment_row)
        .collect()
    }

    /// The session's segments by key (compared as bytes), those after `after`; `limit` of them and never more than
    /// 1,000. Keys begin with the padded numbers of their range, so this is the order of the entries.
    pub async fn segments_page(
        &self,
        session: SessionId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<SegmentRow>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(concat!(
            "SELECT ",
            segment_columns!(),
            " FROM agent_session_archive_segments WHERE session_id = $1 AND object_key > $2
             ORDER BY object_key LIMIT $3"
        ))
        .bind(session.0)
        .bind(after.unwrap_or_default())
        .bind(i64::from(limit.min(MAX_PAGE)))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(SEGMENT, error))?
        .iter()
        .map(segment_row)
        .collect()
    }

    /// The segments of all sessions by session and key, those after `after`; `limit` of them and never more than 1,000.
    pub async fn all_segments_page(
        &self,
        after: Option<(SessionId, &str)>,
        limit: u32,
    ) -> Result<Vec<SegmentRow>, Error> {
        let (session, key) = after.unwrap_or((SessionId(Uuid::nil()), ""));
        let mut connection = self.acquire().await?;
        sqlx::query(concat!(
            "SELECT ",
            segment_columns!(),
            " FROM agent_session_archive_segments WHERE (session_id, object_key) > ($1, $2)
             ORDER BY session_id, object_key LIMIT $3"
        ))
        .bind(session.0)
        .bind(key)
        .bind(i64::from(limit.min(MAX_PAGE)))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(SEGMENT, error))?
        .iter()
        .map(segment_row)
        .collect()
    }

    /// The session's segment of this key; `None` if the manifest does not have it.
    pub async fn segment(&self, session: SessionId, key: &str) -> Result<Option<SegmentRow>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(concat!(
            "SELECT ",
            segment_columns!(),
            " FROM agent_session_archive_segments WHERE session_id = $1 AND object_key = $2"
        ))
        .bind(session.0)
        .bind(key)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| convert(SEGMENT, error))?
        .map(|row| segment_row(&row))
        .transpose()
    }
}

/// Whether the manifest has the object now as this kind; `false`: it had the key already, and nothing is changed. The
/// session's row is locked, so nobody else writes rows of its manifest.
pub(super) async fn insert_segment(
    connection: &mut PgConnection,
    what: &'static str,
    session: SessionId,
    object: &ArchivedObject,
    kind: SegmentKind,
    on_copy: OnRecordedCopy,
) -> Result<bool, Error> {
    let inserted = sqlx::query(
        "INSERT INTO agent_session_archive_segments AS stored
                (session_id, object_key, min_entry_seq, max_entry_seq, kind, entries, plain_bytes, object_bytes,
                 object_digest)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (session_id, object_key) DO UPDATE SET kind = excluded.kind
         WHERE $10 AND stored.kind IN ('session_end', 'retention')
           AND stored.min_entry_seq = excluded.min_entry_seq AND stored.max_entry_seq = excluded.max_entry_seq
           AND stored.object_digest = excluded.object_digest",
    )
    .bind(session.0)
    .bind(&object.key)
    .bind(to_bigint("min_entry_seq", object.min_entry_seq)?)
    .bind(to_bigint("max_entry_seq", object.max_entry_seq)?)
    .bind(kind.name())
    .bind(to_bigint("entries", object.entries)?)
    .bind(to_bigint("plain_bytes", object.plain_bytes)?)
    .bind(to_bigint("object_bytes", object.object_bytes)?)
    .bind(object.object_digest.as_slice())
    .bind(on_copy == OnRecordedCopy::TakeOver)
    .execute(connection)
    .await
    .map_err(|error| convert(During::Archive(what), error))?;
    Ok(inserted.rows_affected() == 1)
}

fn segment_row(row: &PgRow) -> Result<SegmentRow, Error> {
    let read = |error| convert(SEGMENT, error);
    let kind: &str = row.try_get("kind").map_err(read)?;
    let digest: &[u8] = row.try_get("object_digest").map_err(read)?;
    Ok(SegmentRow {
        session: SessionId(row.try_get("session_id").map_err(read)?),
        key: row.try_get("object_key").map_err(read)?,
        min_entry_seq: number(row, "min_entry_seq", SEGMENT)?,
        max_entry_seq: number(row, "max_entry_seq", SEGMENT)?,
        kind: SegmentKind::from_name(kind)
            .ok_or_else(|| Error::Bug(format!("stored segment kind {kind:?} is not known")))?,
        entries: number(row, "entries", SEGMENT)?,
        plain_bytes: number(row, "plain_bytes", SEGMENT)?,
        object_bytes: number(row, "object_bytes", SEGMENT)?,
        object_digest: digest
            .try_into()
            .map_err(|_| Error::Bug(format!("stored object digest has {} bytes", digest.len())))?,
        archived_at_ms: number(row, "archived_at_ms", SEGMENT)?,
    })
}
