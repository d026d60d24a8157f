//! Reads for verification, and what the quarantine holds.

use std::collections::BTreeMap;

use bytes::Bytes;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;
use wakelog_model::SessionId;

use crate::error::{During, convert};
use crate::numbers::from_bigint;
use crate::sessions::decode_labels;
use crate::{Error, Store};

/// The columns of a session that authorisation, listings and services read instead of its fold state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionColumns {
    /// The partition that the session's pin names; `None`: no pin.
    pub pin: Option<i32>,
    /// The partition of the session's row.
    pub partition: i32,
    /// The account that opened it.
    pub owner: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The session that it is a sub-session of.
    pub parent: Option<SessionId>,
    /// Its path below the parent.
    pub subpath: String,
    /// The last complete entry; 0 if none.
    pub last_entry_seq: u64,
    /// The last complete checkpoint; 0 if none.
    pub last_checkpoint_seq: u64,
    /// The current generation; 0 before the first lifetime.
    pub generation: u64,
    /// The current lifetime's status, as on the wire.
    pub lifetime_status: i32,
    /// Whether it, or a session above it, is erased.
    pub erased: bool,
    /// The accounts that may read it, sorted.
    pub subscribers: Vec<String>,
}

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

    /// What readers use of a session instead of its fold state; `None`: the session has no row.
    pub async fn session_columns(&self, session: SessionId) -> Result<Option<SessionColumns>, Error> {
        let mut connection = self.acquire().await?;
        let row = sqlx::query(
            "SELECT pin.partition AS pin, session.partition, owner, labels::text AS labels, parent, subpath,
                    last_entry_seq, last_checkpoint_seq, generation, lifetime_status, erased,
                    array(SELECT account FROM session_subscribers AS reader
                          WHERE reader.session_id = session.session_id ORDER BY account) AS subscribers
             FROM agent_sessions AS session LEFT JOIN session_pins AS pin USING (session_id)
             WHERE session.session_id = $1",
        )
        .bind(session.0)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| convert(AUDIT, error))?;
        row.map(|row| session_columns(&row)).transpose()
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

fn session_columns(row: &PgRow) -> Result<SessionColumns, Error> {
    let read = |error| convert(AUDIT, error);
    let number = |column: &'static str| from_bigint(column, row.try_get(column).map_err(read)?);
    let labels: String = row.try_get("labels").map_err(read)?;
    let parent: Option<Uuid> = row.try_get("parent").map_err(read)?;
    Ok(SessionColumns {
        pin: row.try_get("pin").map_err(read)?,
        partition: row.try_get("partition").map_err(read)?,
        owner: row.try_get("owner").map_err(read)?,
        labels: decode_labels(&labels)?,
        parent: parent.map(SessionId),
        subpath: row.try_get("subpath").map_err(read)?,
        last_entry_seq: number("last_entry_seq")?,
        last_checkpoint_seq: number("last_checkpoint_seq")?,
        generation: number("generation")?,
        lifetime_status: row.try_get("lifetime_status").map_err(read)?,
        erased: row.try_get("erased").map_err(read)?,
        subscribers: row.try_get("subscribers").map_err(read)?,
    })
}
