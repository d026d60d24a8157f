//! What the rest of a rebuild asks.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;
use wakelog_model::SessionId;

use super::rows::UnknownSession;
use crate::error::{During, convert};
use crate::numbers::{count, from_bigint, to_integer};
use crate::{Error, Store};

/// Sessions that are asked for at a time.
const SESSIONS: usize = 1_000;

const READ: During = During::Statement("restored sessions");

impl Store {
    /// The partitions of those of the sessions that have a row, erased ones as well.
    pub async fn stored_sessions(&self, sessions: &[SessionId]) -> Result<HashMap<SessionId, i32>, Error> {
        let ids: Vec<Uuid> = sessions.iter().map(|session| session.0).collect();
        let mut connection = self.acquire().await?;
        let found: Vec<(Uuid, i32)> =
            sqlx::query_as("SELECT session_id, partition FROM agent_sessions WHERE session_id = ANY($1)")
                .bind(ids)
                .fetch_all(&mut *connection)
                .await
                .map_err(|error| convert(READ, error))?;
        let found = found.into_iter();
        Ok(found.map(|(id, partition)| (SessionId(id), partition)).collect())
    }

    /// Below which offset of its partition the newest state of each of the sessions holds everything. A session without a state
    /// in this incarnation is absent.
    pub async fn state_offsets(
        &self,
        sessions: &[SessionId],
        incarnation: u32,
    ) -> Result<HashMap<SessionId, u64>, Error> {
        let ids: Vec<Uuid> = sessions.iter().map(|session| session.0).collect();
        let mut connection = self.acquire().await?;
        let rows: Vec<(Uuid, i64)> = sqlx::query_as(
            "SELECT session_id, max(next_offset) FROM session_archive_snapshots
             WHERE session_id = ANY($1) AND incarnation = $2 GROUP BY session_id",
        )
        .bind(ids)
        .bind(to_integer("incarnation", incarnation)?)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(READ, error))?;
        rows.into_iter()
            .map(|(session, offset)| Ok((SessionId(session), from_bigint("next_offset", offset)?)))
            .collect()
    }

    /// The highest of those offsets on a partition; 0 if there is none.
    pub async fn highest_state_offset(&self, partition: i32, incarnation: u32) -> Result<u64, Error> {
        let mut connection = self.acquire().await?;
        let highest: Option<i64> = sqlx::query_scalar(
            "SELECT max(next_offset) FROM session_archive_snapshots JOIN agent_sessions USING (session_id)
             WHERE partition = $1 AND incarnation = $2",
        )
        .bind(partition)
        .bind(to_integer("incarnation", incarnation)?)
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| convert(READ, error))?;
        from_bigint("next_offset", highest.unwrap_or_default())
    }

    /// Those of the sessions of which nothing is known but that they are erased.
    pub async fn restored_as_erased(&self, sessions: &[SessionId]) -> Result<HashSet<SessionId>, Error> {
        let ids: Vec<Uuid> = sessions.iter().map(|session| session.0).collect();
        let mut connection = self.acquire().await?;
        let found: Vec<Uuid> = sqlx::query_scalar(
            "SELECT session_id FROM agent_sessions WHERE session_id = ANY($1) AND erased AND owner = ''",
        )
        .bind(ids)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(READ, error))?;
        Ok(found.into_iter().map(SessionId).collect())
    }

    /// The sessions without a row of which records from this offset on were put aside because nothing opened or bound it before,
    /// with the first and the last of those; at most `limit` of them, and how many there are.
    pub async fn unknown_sessions(
        &self,
        topic: &str,
        partition: i32,
        from: i64,
        limit: usize,
    ) -> Result<(Vec<UnknownSession>, u64), Error> {
        let mut connection = self.acquire().await?;
        let rows: Vec<(Vec<u8>, i64, i64)> = sqlx::query_as(
            "SELECT record_key, min(record_offset), max(record_offset) FROM quarantined_records
             WHERE topic = $1 AND partition = $2 AND record_offset >= $3 AND reason = 'unbound'
             GROUP BY record_key ORDER BY 2",
        )
        .bind(topic)
        .bind(partition)
        .bind(from)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(READ, error))?;
        drop(connection);
        let mut unknown = Vec::new();
        let mut unknown_count = 0;
        for page in rows.chunks(SESSIONS) {
            let named: Vec<UnknownSession> = page.iter().filter_map(unknown_session).collect();
            let sessions: Vec<SessionId> = named.iter().map(|named| named.session).collect();
            let stored = self.stored_sessions(&sessions).await?;
            unknown_count += named.len() - stored.len();
            let left = limit.saturating_sub(unknown.len());
            unknown.extend(
                named
                    .into_iter()
                    .filter(|named| !stored.contains_key(&named.session))
                    .take(left),
            );
        }
        Ok((unknown, count(unknown_count)))
    }
}

/// `None`: the key is no session's.
fn unknown_session((key, first, last): &(Vec<u8>, i64, i64)) -> Option<UnknownSession> {
    Some(UnknownSession {
        session: std::str::from_utf8(key).ok()?.parse().ok()?,
        first_offset: *first,
        last_offset: *last,
    })
}
