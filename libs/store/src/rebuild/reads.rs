//! What the rest of a rebuild asks.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;
use wakelog_model::SessionId;

use crate::error::{During, convert};
use crate::numbers::{from_bigint, to_integer};
use crate::{Error, Store};

const READ: During = During::Statement("restored sessions");

impl Store {
    /// Those of the sessions that have a row, erased ones as well.
    pub async fn stored_sessions(&self, sessions: &[SessionId]) -> Result<HashSet<SessionId>, Error> {
        let ids: Vec<Uuid> = sessions.iter().map(|session| session.0).collect();
        let mut connection = self.acquire().await?;
        let found: Vec<Uuid> =
            sqlx::query_scalar("SELECT session_id FROM agent_sessions WHERE session_id = ANY($1)")
                .bind(ids)
                .fetch_all(&mut *connection)
                .await
                .map_err(|error| convert(READ, error))?;
        Ok(found.into_iter().map(SessionId).collect())
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
}
