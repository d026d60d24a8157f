//! What the hot tail and the archive hold of a session, asked past the services.

use serde_json::Value;
use sqlx::{Connection as _, PgConnection};

use crate::archive_objects::{DONE, verify};
use crate::support::load::Loaded;
use crate::support::native::NativeStack;

/// Each entry is in the hot tail or in a segment of the manifest, in one view of the database.
const MISSING: &str = "SELECT count(*) FROM generate_series(1, $2::bigint) AS entry
    WHERE NOT EXISTS (SELECT FROM agent_session_transcript_entries AS row
                      WHERE row.session_id = $1 AND row.entry_seq = entry)
      AND NOT EXISTS (SELECT FROM agent_session_archive_segments AS segment
                      WHERE segment.session_id = $1
                        AND entry BETWEEN segment.min_entry_seq AND segment.max_entry_seq)";

const HOT_ENTRIES: &str =
    "SELECT count(DISTINCT entry_seq) FROM agent_session_transcript_entries WHERE session_id = $1";

/// Rows before the latest checkpoint of the hot tail.
const SUPERSEDED_ROWS: &str = "SELECT count(*) FROM agent_session_transcript_entries
    WHERE session_id = $1 AND entry_seq < (SELECT max(entry_seq) FROM agent_session_transcript_entries
                                           WHERE session_id = $1 AND checkpoint)";

const DELTA_BYTES: &str =
    "SELECT coalesce(sum(plain_length), 0)::bigint FROM agent_session_transcript_entries
    WHERE session_id = $1 AND NOT checkpoint";

const COPIED: &str = "SELECT count(*) FROM generate_series(1, $2::bigint) AS entry
    WHERE EXISTS (SELECT FROM agent_session_archive_segments AS segment
                  WHERE segment.session_id = $1
                    AND entry BETWEEN segment.min_entry_seq AND segment.max_entry_seq)";

/// What is held of one session.
pub(crate) struct Holdings {
    database: PgConnection,
    session: uuid::Uuid,
}

impl Holdings {
    pub(crate) async fn of(stack: &NativeStack, session: &Loaded) -> Self {
        let database = PgConnection::connect(&stack.database_url()).await;
        Self {
            database: database.expect("a connection"),
            session: session.lifetime.session_id.parse().expect("an id"),
        }
    }

    /// Entries that have a row in the hot tail.
    pub(crate) async fn hot_entries(&mut self) -> u64 {
        self.number(HOT_ENTRIES).await
    }

    /// Rows that the latest checkpoint has superseded.
    pub(crate) async fn superseded_rows(&mut self) -> u64 {
        self.number(SUPERSEDED_ROWS).await
    }

    /// Plain bytes of deltas in the hot tail.
    pub(crate) async fn delta_bytes(&mut self) -> u64 {
        self.number(DELTA_BYTES).await
    }

    /// How many of the first `entries` entries are in segments.
    pub(crate) async fn copied_entries(&mut self, entries: u64) -> u64 {
        self.number_up_to(COPIED, entries).await
    }

    /// Nothing that was acknowledged is gone from both places, and every object that the manifest has is in the bucket.
    pub(crate) async fn are_whole(&mut self, stack: &NativeStack, session: &Loaded, context: &str) {
        let acked = session.sent.acked as u64;
        let missing = self.number_up_to(MISSING, acked).await;
        assert_eq!(missing, 0, "{context}: of {acked} entries so many are nowhere");
        let recorded: Vec<(String, i64)> = sqlx::query_as(
            "SELECT object_key, object_bytes FROM agent_session_archive_segments WHERE session_id = $1",
        )
        .bind(self.session)
        .fetch_all(&mut self.database)
        .await
        .expect("the manifest");
        for (key, bytes) in recorded {
            let stored = std::fs::metadata(stack.object_path(&key)).map(|object| object.len());
            assert_eq!(stored.ok(), Some(bytes as u64), "{context}: the object {key}");
        }
    }

    async fn number(&mut self, query: &'static str) -> u64 {
        let number: i64 = sqlx::query_scalar(query)
            .bind(self.session)
            .fetch_one(&mut self.database)
            .await
            .expect("a number");
        number as u64
    }

    async fn number_up_to(&mut self, query: &'static str, entries: u64) -> u64 {
        let number: i64 = sqlx::query_scalar(query)
            .bind(self.session)
            .bind(entries as i64)
            .fetch_one(&mut self.database)
            .await
            .expect("a number");
        number as u64
    }
}

/// `wakelog segments verify` with these arguments: it ends well, every segment is good. Returns its report.
#[track_caller]
pub(crate) fn segments_verify(stack: &NativeStack, more: &[&str]) -> Value {
    verify(stack, more, DONE)
}
