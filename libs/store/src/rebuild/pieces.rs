//! A session's unfinished parts and its segments, stored before the session itself: without its row nobody sees them.

use uuid::Uuid;
use wakelog_model::SessionId;

use super::standing::{REBUILD, end};
use crate::batch::entries::insert_parts;
use crate::error::{During, convert};
use crate::numbers::to_bigint;
use crate::rows::PartRow;
use crate::{ArchivedObject, Error, SegmentKind, Store};

const CHANGE: During = During::Archive(REBUILD);

impl Store {
    /// Deletes what a rebuild that was interrupted has left of a session that has no row. [`Error::RebuildFenced`].
    pub async fn clear_pieces(&self, epoch: i64, session: SessionId) -> Result<(), Error> {
        let mut transaction = self.restoring(epoch).await?;
        let cleared = sqlx::query(
            "WITH gone AS (
                 DELETE FROM agent_session_archive_segments WHERE session_id = $1
                    AND NOT EXISTS (SELECT FROM agent_sessions WHERE session_id = $1)
             )
             DELETE FROM agent_session_transcript_entries WHERE session_id = $1
                AND NOT EXISTS (SELECT FROM agent_sessions WHERE session_id = $1)",
        )
        .bind(session.0)
        .execute(&mut *transaction)
        .await;
        end(
            transaction,
            cleared.map_err(|error| convert(CHANGE, error)).map(drop),
        )
        .await
    }

    /// Stores parts of the entry that was not complete. [`Error::RebuildFenced`].
    pub async fn restore_parts(&self, epoch: i64, parts: &[PartRow]) -> Result<(), Error> {
        let mut transaction = self.restoring(epoch).await?;
        let stored = insert_parts(&mut transaction, parts).await;
        end(transaction, stored).await
    }

    /// Stores rows of the manifest, as copies: [`Self::settle_segments`] says in the end what they are.
    /// [`Error::RebuildFenced`].
    pub async fn restore_segments(
        &self,
        epoch: i64,
        session: SessionId,
        segments: &[ArchivedObject],
    ) -> Result<(), Error> {
        let number = |what, value: fn(&ArchivedObject) -> u64| {
            let numbers = segments.iter().map(|segment| to_bigint(what, value(segment)));
            numbers.collect::<Result<Vec<i64>, Error>>()
        };
        let keys: Vec<&str> = segments.iter().map(|segment| segment.key.as_str()).collect();
        let digests: Vec<&[u8]> = segments
            .iter()
            .map(|segment| segment.object_digest.as_slice())
            .collect();
        let (min, max) = (
            number("min_entry_seq", |segment| segment.min_entry_seq)?,
            number("max_entry_seq", |segment| segment.max_entry_seq)?,
        );
        let (entries, plain_bytes, object_bytes) = (
            number("entries", |segment| segment.entries)?,
            number("plain_bytes", |segment| segment.plain_bytes)?,
            number("object_bytes", |segment| segment.object_bytes)?,
        );
        let mut transaction = self.restoring(epoch).await?;
        let stored = sqlx::query(
            "INSERT INTO agent_session_archive_segments
                    (session_id, kind, object_key, min_entry_seq, max_entry_seq, entries, plain_bytes, object_bytes,
                     object_digest)
             SELECT $1, $2, * FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                                          $8::bigint[], $9::bytea[])
             ON CONFLICT (session_id, object_key) DO NOTHING",
        )
        .bind(session.0)
        .bind(SegmentKind::Retention.name())
        .bind(keys)
        .bind(min)
        .bind(max)
        .bind(entries)
        .bind(plain_bytes)
        .bind(object_bytes)
        .bind(digests)
        .execute(&mut *transaction)
        .await;
        end(
            transaction,
            stored.map_err(|error| convert(CHANGE, error)).map(drop),
        )
        .await
    }

    /// Gives the segments of these sessions the kinds that an archiver would have: a copy where the hot tail has a row of its
    /// range or another segment has all of it, superseded before the last checkpoint, else what a body needs. Nothing happens once another process is at the rebuild.
    pub async fn settle_segments(&self, epoch: i64, sessions: &[SessionId]) -> Result<(), Error> {
        let ids: Vec<Uuid> = sessions.iter().map(|session| session.0).collect();
        let mut connection = self.acquire().await?;
        sqlx::query(
            "UPDATE agent_session_archive_segments AS segment
             SET kind = CASE
                 WHEN EXISTS (SELECT FROM agent_session_transcript_entries AS hot
                              WHERE hot.session_id = segment.session_id
                                AND hot.entry_seq BETWEEN segment.min_entry_seq AND segment.max_entry_seq)
                     OR EXISTS (SELECT FROM agent_session_archive_segments AS wider
                                WHERE wider.session_id = segment.session_id
                                  AND wider.min_entry_seq <= segment.min_entry_seq
                                  AND wider.max_entry_seq >= segment.max_entry_seq
                                  AND (wider.max_entry_seq - wider.min_entry_seq, segment.object_key)
                                      > (segment.max_entry_seq - segment.min_entry_seq, wider.object_key)
                                  AND NOT EXISTS (SELECT FROM agent_session_transcript_entries AS hot
                                                  WHERE hot.session_id = wider.session_id
                                                    AND hot.entry_seq BETWEEN wider.min_entry_seq
                                                                          AND wider.max_entry_seq))
                     THEN 'retention'
                 WHEN segment.max_entry_seq < session.last_checkpoint_seq THEN 'superseded'
                 ELSE 'safety_valve' END
             FROM agent_sessions AS session
             WHERE segment.session_id = ANY($1) AND session.session_id = segment.session_id
               AND EXISTS (SELECT FROM store_rebuilds WHERE epoch = $2 AND finished_at IS NULL)",
        )
        .bind(ids)
        .bind(epoch)
        .execute(&mut *connection)
        .await
        .map_err(|error| convert(CHANGE, error))?;
        Ok(())
    }
}
