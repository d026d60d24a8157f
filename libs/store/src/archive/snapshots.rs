//! A session in one view of the database, and the states that were stored of it.

use bytes::Bytes;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};
use uuid::Uuid;
use wakelog_model::SessionId;

use super::number;
use super::rows::{SnapshotRow, SnapshotSource, UnfinishedEntry};
use crate::error::{During, convert};
use crate::lifetimes::all_lifetimes;
use crate::numbers::{clamp_bigint, from_bigint, from_integer, to_bigint, to_integer};
use crate::sessions::decode_labels;
use crate::store::give_up;
use crate::{Error, Store};

/// States that are listed, at most. Two are kept.
const MAX_LISTED: i64 = 1_000;

const SOURCE: During = During::Statement("snapshot source");
const SNAPSHOT: During = During::Statement("snapshot");

impl Store {
    /// The session with everything that a state of it is made of, seen at one moment: the state is the fold of exactly
    /// the records below `next_offset`. `None`: the session has no row.
    ///
    /// Bodies of the unfinished entry are not in it; [`UnfinishedEntry`] says how to read them safely.
    pub async fn snapshot_source(
        &self,
        topic: &str,
        session: SessionId,
    ) -> Result<Option<SnapshotSource>, Error> {
        let mut transaction = self.begin().await?;
        sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            .execute(&mut *transaction)
            .await
            .map_err(|error| convert(SOURCE, error))?;
        let source = read_source(&mut transaction, topic, session).await;
        // It has written nothing: there is nothing to commit.
        give_up(transaction).await;
        source
    }

    /// Records that a state is in the object store; the same one again renews its time. `false`: nothing is recorded, because
    /// the session is erased, or because the partition is not folded as far as the state any more: the database has lost it.
    ///
    /// The row's version is kept only if it is still the row's: a database that lost transactions gives their numbers again.
    pub async fn record_snapshot(&self, topic: &str, snapshot: &SnapshotRow) -> Result<bool, Error> {
        let mut connection = self.acquire().await?;
        // The lock makes a sweep of the erased session wait, so that it deletes this row, or this one see the erasure.
        let recorded = sqlx::query(
            "INSERT INTO session_archive_snapshots (session_id, incarnation, next_offset, last_entry_seq, row_version)
             SELECT session_id, $2, $3, $4, CASE WHEN session.xmin::text = $5 THEN $5 ELSE '' END
             FROM agent_sessions AS session
             WHERE session_id = $1 AND NOT erased
               AND EXISTS (SELECT FROM stream_progress AS progress
                           WHERE progress.topic = $6 AND progress.partition = session.partition
                             AND progress.next_offset >= $3)
             FOR NO KEY UPDATE
             ON CONFLICT (session_id, incarnation, next_offset) DO UPDATE
             SET last_entry_seq = excluded.last_entry_seq, row_version = excluded.row_version, taken_at = now()",
        )
        .bind(snapshot.session.0)
        .bind(to_integer("incarnation", snapshot.incarnation)?)
        .bind(to_bigint("next_offset", snapshot.next_offset)?)
        .bind(to_bigint("last_entry_seq", snapshot.last_entry_seq)?)
        .bind(&snapshot.row_version)
        .bind(topic)
        .execute(&mut *connection)
        .await
        .map_err(|error| convert(SNAPSHOT, error))?;
        Ok(recorded.rows_affected() == 1)
    }

    /// The states that are recorded of the session, the newest first; never more than 1,000.
    pub async fn snapshots(&self, session: SessionId) -> Result<Vec<SnapshotRow>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(
            "SELECT incarnation, next_offset, last_entry_seq, row_version FROM session_archive_snapshots
             WHERE session_id = $1 ORDER BY incarnation DESC, next_offset DESC LIMIT $2",
        )
        .bind(session.0)
        .bind(MAX_LISTED)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(SNAPSHOT, error))?
        .iter()
        .map(|row| snapshot_row(session, row))
        .collect()
    }

    /// Forgets the states that are older than the one of this incarnation and offset, and says how many. The newest
    /// one stays whatever the offset: coverage rests on it.
    pub async fn drop_snapshots_before(
        &self,
        session: SessionId,
        incarnation: u32,
        next_offset: u64,
    ) -> Result<u64, Error> {
        let mut connection = self.acquire().await?;
        let dropped = sqlx::query(
            "DELETE FROM session_archive_snapshots AS older
             WHERE session_id = $1 AND (incarnation, next_offset) < ($2, $3)
               AND EXISTS (SELECT FROM session_archive_snapshots AS newer
                           WHERE newer.session_id = older.session_id
                             AND (newer.incarnation, newer.next_offset) > (older.incarnation, older.next_offset))",
        )
        .bind(session.0)
        .bind(to_integer("incarnation", incarnation)?)
        .bind(clamp_bigint(next_offset))
        .execute(&mut *connection)
        .await
        .map_err(|error| convert(SNAPSHOT, error))?;
        Ok(dropped.rows_affected())
    }
}

async fn read_source(
    connection: &mut PgConnection,
    topic: &str,
    session: SessionId,
) -> Result<Option<SnapshotSource>, Error> {
    let row = sqlx::query(
        "SELECT session.xmin::text AS row_version, session.partition, owner, labels::text AS labels, parent, subpath,
                fold_state, last_entry_seq, last_checkpoint_seq, erased,
                (extract(epoch FROM opened_at) * 1000000)::bigint AS opened_at_us,
                (extract(epoch FROM session.updated_at) * 1000000)::bigint AS updated_at_us,
                progress.next_offset,
                coalesce((SELECT incarnation FROM topic_incarnations WHERE topic = $2), 1) AS incarnation
         FROM agent_sessions AS session
         LEFT JOIN stream_progress AS progress ON progress.topic = $2 AND progress.partition = session.partition
         WHERE session_id = $1",
    )
    .bind(session.0)
    .bind(topic)
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| convert(SOURCE, error))?;
    let Some(row) = row else {
        return Ok(None);
    };
    let read = |error| convert(SOURCE, error);
    let state: Vec<u8> = row.try_get("fold_state").map_err(read)?;
    let labels: String = row.try_get("labels").map_err(read)?;
    let parent: Option<Uuid> = row.try_get("parent").map_err(read)?;
    let next_offset: Option<i64> = row.try_get("next_offset").map_err(read)?;
    let last_entry_seq = number(&row, "last_entry_seq", SOURCE)?;
    Ok(Some(SnapshotSource {
        session,
        partition: row.try_get("partition").map_err(read)?,
        incarnation: from_integer("incarnation", row.try_get("incarnation").map_err(read)?)?,
        next_offset: match next_offset {
            Some(offset) => from_bigint("next_offset", offset)?,
            None => {
                return Err(Error::Bug(format!(
                    "session {session} is on a partition of topic {topic} that nobody folds"
                )));
            }
        },
        row_version: row.try_get("row_version").map_err(read)?,
        state: Bytes::from(state),
        owner: row.try_get("owner").map_err(read)?,
        labels: decode_labels(&labels)?,
        parent: parent.map(SessionId),
        subpath: row.try_get("subpath").map_err(read)?,
        erased: row.try_get("erased").map_err(read)?,
        last_entry_seq,
        last_checkpoint_seq: number(&row, "last_checkpoint_seq", SOURCE)?,
        opened_at_us: number(&row, "opened_at_us", SOURCE)?,
        updated_at_us: number(&row, "updated_at_us", SOURCE)?,
        lifetimes: all_lifetimes(&mut *connection, session).await?,
        access: read_access(&mut *connection, session).await?,
        unfinished: read_unfinished(connection, session, last_entry_seq).await?,
    }))
}

async fn read_access(connection: &mut PgConnection, session: SessionId) -> Result<Vec<(String, i32)>, Error> {
    sqlx::query_as("SELECT account, role FROM session_subscribers WHERE session_id = $1 ORDER BY account")
        .bind(session.0)
        .fetch_all(connection)
        .await
        .map_err(|error| convert(SOURCE, error))
}

async fn read_unfinished(
    connection: &mut PgConnection,
    session: SessionId,
    last_entry_seq: u64,
) -> Result<Option<UnfinishedEntry>, Error> {
    let rows: Vec<(i64, i64, i64, i64)> = sqlx::query_as(
        "SELECT entry_seq, generation, count(*), sum(plain_length)::bigint FROM agent_session_transcript_entries
         WHERE session_id = $1 AND entry_seq > $2 GROUP BY entry_seq, generation LIMIT 2",
    )
    .bind(session.0)
    .bind(to_bigint("last_entry_seq", last_entry_seq)?)
    .fetch_all(connection)
    .await
    .map_err(|error| convert(SOURCE, error))?;
    let &[(entry_seq, generation, parts, plain_bytes)] = rows.as_slice() else {
        return match rows.is_empty() {
            true => Ok(None),
            false => Err(Error::Bug(format!(
                "session {session} has more than one unfinished entry"
            ))),
        };
    };
    Ok(Some(UnfinishedEntry {
        entry_seq: from_bigint("entry_seq", entry_seq)?,
        generation: from_bigint("generation", generation)?,
        parts: u32::try_from(parts)
            .map_err(|_| Error::Bug(format!("session {session} has {parts} unfinished parts")))?,
        plain_bytes: from_bigint("plain_length", plain_bytes)?,
    }))
}

fn snapshot_row(session: SessionId, row: &PgRow) -> Result<SnapshotRow, Error> {
    let read = |error| convert(SNAPSHOT, error);
    Ok(SnapshotRow {
        session,
        incarnation: from_integer("incarnation", row.try_get("incarnation").map_err(read)?)?,
        next_offset: number(row, "next_offset", SNAPSHOT)?,
        last_entry_seq: number(row, "last_entry_seq", SNAPSHOT)?,
        row_version: row.try_get("row_version").map_err(read)?,
    })
}
