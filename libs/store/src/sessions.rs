//! Reads of sessions, for ingest and the reconstructor.

use std::collections::BTreeMap;

use bytes::Bytes;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;
use wakelog_model::SessionId;

use crate::error::{During, convert};
use crate::numbers::{clamp_bigint, from_bigint};
use crate::rows::{ErasureStanding, ListQuery, SessionRow};
use crate::{Error, Store};

/// Sessions of one page of a listing, at most.
const MAX_PAGE: u32 = 1_000;

/// The end of the year 9999: a page token that says later is no instant that the database can add up.
const LAST_INSTANT_US: i64 = 253_402_300_799_999_999;

const SESSION: During = During::Statement("session");

macro_rules! session_columns {
    () => {
        "s.session_id, s.partition, s.owner, s.labels::text AS labels, s.parent, s.subpath, s.last_entry_seq,
         s.last_checkpoint_seq, s.generation, s.lifetime_status,
         (extract(epoch FROM s.opened_at) * 1000000)::bigint AS opened_at_us,
         (extract(epoch FROM s.updated_at) * 1000000)::bigint AS updated_at_us"
    };
}

/// What comes after the last session of the page before; everything if there was none.
macro_rules! after {
    () => {
        "(s.opened_at, s.session_id)
             < (coalesce(timestamptz 'epoch' + $2::bigint * interval '1 microsecond', 'infinity'), $3::uuid) "
    };
}

impl Store {
    /// The session, if the account may see it.
    ///
    /// One query of one shape (opaque-absence): an unknown session, an erased one and somebody else's are the same
    /// answer, found in the same way.
    pub async fn visible_session(
        &self,
        session: SessionId,
        account: &str,
    ) -> Result<Option<SessionRow>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(concat!(
            "SELECT ",
            session_columns!(),
            " FROM agent_sessions AS s
             WHERE s.session_id = $1 AND NOT s.erased
               AND (s.owner = $2 OR EXISTS (SELECT FROM session_subscribers AS b
                                            WHERE b.session_id = s.session_id AND b.account = $2))"
        ))
        .bind(session.0)
        .bind(account)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| convert(SESSION, error))?
        .map(|row| session_row(&row))
        .transpose()
    }

    /// What the account may do about erasing the session; `None`: it may not see it.
    ///
    /// One query of one shape (opaque-absence), as [`Self::visible_session`]. An erased session is there for its owner
    /// alone, whom the tombstone still names: an erasure whose answer was lost can be asked for again.
    pub async fn erasure_standing(
        &self,
        session: SessionId,
        account: &str,
    ) -> Result<Option<ErasureStanding>, Error> {
        let mut connection = self.acquire().await?;
        let row: Option<(i32, bool, bool)> = sqlx::query_as(
            "SELECT s.partition, s.owner = $2, s.erased FROM agent_sessions AS s
             WHERE s.session_id = $1
               AND (s.owner = $2
                    OR NOT s.erased AND EXISTS (SELECT FROM session_subscribers AS b
                                                WHERE b.session_id = s.session_id AND b.account = $2))",
        )
        .bind(session.0)
        .bind(account)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| convert(SESSION, error))?;
        Ok(row.map(|(partition, is_owner, erased)| ErasureStanding {
            partition,
            is_owner,
            erased,
        }))
    }

    /// The account's sessions and those that it was given access to, the newest opened first.
    pub async fn list_sessions(&self, account: &str, query: &ListQuery) -> Result<Vec<SessionRow>, Error> {
        let labels = encode_labels(&query.labels)?;
        let opened_at_us = query
            .after
            .map(|(opened_at_us, _)| clamp_bigint(opened_at_us).min(LAST_INSTANT_US));
        let session = query.after.map_or(Uuid::max(), |(_, session)| session.0);
        let mut connection = self.acquire().await?;
        // The owner's half is an index scan that starts after the page before and stops at the limit.
        sqlx::query(concat!(
            "WITH page AS (
                 (SELECT s.* FROM agent_sessions AS s
                  WHERE s.owner = $1 AND NOT s.erased AND s.labels @> $4::jsonb AND ",
            after!(),
            "     ORDER BY s.opened_at DESC, s.session_id DESC LIMIT $5)
                 UNION ALL
                 (SELECT s.* FROM session_subscribers AS b JOIN agent_sessions AS s USING (session_id)
                  WHERE b.account = $1 AND s.owner <> $1 AND NOT s.erased AND s.labels @> $4::jsonb AND ",
            after!(),
            "     ORDER BY s.opened_at DESC, s.session_id DESC LIMIT $5)
             )
             SELECT ",
            session_columns!(),
            " FROM page AS s ORDER BY s.opened_at DESC, s.session_id DESC LIMIT $5"
        ))
        .bind(account)
        .bind(opened_at_us)
        .bind(session)
        .bind(labels)
        .bind(i64::from(query.limit.min(MAX_PAGE)))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(SESSION, error))?
        .iter()
        .map(session_row)
        .collect()
    }

    /// The encoded state of the fold; `None` for a session that was never opened.
    pub async fn session_state(&self, session: SessionId) -> Result<Option<Bytes>, Error> {
        let mut connection = self.acquire().await?;
        let state: Option<Vec<u8>> =
            sqlx::query_scalar("SELECT fold_state FROM agent_sessions WHERE session_id = $1")
                .bind(session.0)
                .fetch_optional(&mut *connection)
                .await
                .map_err(|error| convert(SESSION, error))?;
        Ok(state.map(Bytes::from))
    }
}

/// Labels as the text of a JSON object, to be cast to jsonb.
pub(crate) fn encode_labels(labels: &BTreeMap<String, String>) -> Result<String, Error> {
    serde_json::to_string(labels).map_err(|error| Error::Bug(format!("labels do not encode: {error}")))
}

/// Labels from the text of a JSON object, as the store has them.
pub(crate) fn decode_labels(labels: &str) -> Result<BTreeMap<String, String>, Error> {
    serde_json::from_str(labels).map_err(|error| Error::Bug(format!("stored labels do not decode: {error}")))
}

fn session_row(row: &PgRow) -> Result<SessionRow, Error> {
    let read = |error| convert(SESSION, error);
    let number = |column: &'static str| -> Result<u64, Error> {
        from_bigint(
            column,
            row.try_get(column).map_err(|error| convert(SESSION, error))?,
        )
    };
    let labels: String = row.try_get("labels").map_err(read)?;
    let opened_at_us = number("opened_at_us")?;
    Ok(SessionRow {
        session: SessionId(row.try_get("session_id").map_err(read)?),
        partition: row.try_get("partition").map_err(read)?,
        owner: row.try_get("owner").map_err(read)?,
        labels: decode_labels(&labels)?,
        parent: row
            .try_get::<Option<Uuid>, _>("parent")
            .map_err(read)?
            .map(SessionId),
        subpath: row.try_get("subpath").map_err(read)?,
        last_entry_seq: number("last_entry_seq")?,
        last_checkpoint_seq: number("last_checkpoint_seq")?,
        generation: number("generation")?,
        lifetime_status: row.try_get("lifetime_status").map_err(read)?,
        opened_at_ms: opened_at_us / 1_000,
        opened_at_us,
        updated_at_ms: number("updated_at_us")? / 1_000,
    })
}
