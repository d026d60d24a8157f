//! Reads for verification, and what the quarantine holds.

use std::collections::BTreeMap;

use bytes::Bytes;
use uuid::Uuid;
use wakelog_model::SessionId;

use crate::error::{During, convert};
use crate::numbers::from_bigint;
use crate::{Error, Store};

const AUDIT: During = During::Statement("audit");

impl Store {
    /// The sessions of a partition with their encoded fold states, by id, those after `after`. Erased ones as well.
    pub async fn session_digests(
        &self,
        partition: i32,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<(SessionId, Bytes)>, Error> {
        // "From the next id on" and not "after, if given": one condition that an index serves.
        let from = match after.map(|session| session.0.as_u128().checked_add(1)) {
            None => Uuid::nil(),
            Some(Some(next)) => Uuid::from_u128(next),
            Some(None) => return Ok(Vec::new()),
        };
        let mut connection = self.acquire().await?;
        let rows: Vec<(Uuid, Vec<u8>)> = sqlx::query_as(
            "SELECT session_id, fold_state FROM agent_sessions
             WHERE partition = $1 AND session_id >= $2 ORDER BY session_id LIMIT $3",
        )
        .bind(partition)
        .bind(from)
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(AUDIT, error))?;
        Ok(rows
            .into_iter()
            .map(|(session, state)| (SessionId(session), Bytes::from(state)))
            .collect())
    }

    /// Quarantined records of a partition, by reason.
    pub async fn quarantine_counts(
        &self,
        topic: &str,
        partition: i32,
    ) -> Result<BTreeMap<String, u64>, Error> {
        let mut connection = self.acquire().await?;
        let rows: Vec<(String, i64)> = sqlx::query_as(
            "SELECT reason, count(*) FROM quarantined_records WHERE topic = $1 AND partition = $2 GROUP BY reason",
        )
        .bind(topic)
        .bind(partition)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(AUDIT, error))?;
        rows.into_iter()
            .map(|(reason, records)| Ok((reason, from_bigint("count", records)?)))
            .collect()
    }

    /// Quarantined records whose key is the session's.
    pub async fn quarantined_of_session(&self, session: SessionId) -> Result<u64, Error> {
        let mut connection = self.acquire().await?;
        let records: i64 =
            sqlx::query_scalar("SELECT count(*) FROM quarantined_records WHERE record_key = $1")
                .bind(session.to_string().into_bytes())
                .fetch_one(&mut *connection)
                .await
                .map_err(|error| convert(AUDIT, error))?;
        from_bigint("count", records)
    }
}
