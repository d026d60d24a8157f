//! A row precedes each PUT: so every object that may exist is known, and an object that is being deleted is recorded
//! by nobody.

use std::time::Duration;

use sqlx::PgConnection;
use uuid::Uuid;
use wakelog_model::SessionId;

use super::rows::{Staged, StagedObject, Staging};
use crate::error::{During, convert};
use crate::{Error, Store};

/// Staged objects that are listed, at most.
const MAX_LISTED: i64 = 10_000;

const STAGING: During = During::Statement("staged object");

impl Store {
    /// Announces the PUT of an object. Staging it again renews the time and nothing else: whoever staged it before may
    /// still record it. Refused while the object is condemned, and if the session is erased.
    pub async fn stage_object(&self, session: SessionId, key: &str) -> Result<Staged, Error> {
        let mut connection = self.acquire().await?;
        let staging: Option<i64> = sqlx::query_scalar(
            "INSERT INTO archive_staged_objects AS stored (object_key, session_id)
             SELECT $2, session_id FROM agent_sessions WHERE session_id = $1 AND NOT erased
             ON CONFLICT (object_key) DO UPDATE SET staged_at = now()
             WHERE stored.session_id = excluded.session_id AND stored.condemned_at IS NULL
             RETURNING staging_id",
        )
        .bind(session.0)
        .bind(key)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| convert(STAGING, error))?;
        match staging {
            Some(staging) => Ok(Staged::Ready(Staging(staging))),
            None => why_not_staged(&mut connection, session, key).await,
        }
    }

    /// The session's objects that are staged or condemned, by key; never more than 10,000.
    pub async fn staged_objects(&self, session: SessionId) -> Result<Vec<StagedObject>, Error> {
        let mut connection = self.acquire().await?;
        let rows: Vec<(String, f64, bool)> = sqlx::query_as(
            "SELECT object_key, extract(epoch FROM now() - staged_at)::double precision, condemned_at IS NOT NULL
             FROM archive_staged_objects WHERE session_id = $1 ORDER BY object_key LIMIT $2",
        )
        .bind(session.0)
        .bind(MAX_LISTED)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(STAGING, error))?;
        Ok(rows
            .into_iter()
            .map(|(key, age, condemned)| StagedObject {
                key,
                session,
                // A clock that was set back makes it negative: as fresh as can be, which is the careful reading.
                age: Duration::try_from_secs_f64(age).unwrap_or_default(),
                condemned,
            })
            .collect())
    }
}

async fn why_not_staged(
    connection: &mut PgConnection,
    session: SessionId,
    key: &str,
) -> Result<Staged, Error> {
    let (erased, holder): (Option<bool>, Option<Uuid>) = sqlx::query_as(
        "SELECT (SELECT erased FROM agent_sessions WHERE session_id = $1),
                (SELECT session_id FROM archive_staged_objects WHERE object_key = $2)",
    )
    .bind(session.0)
    .bind(key)
    .fetch_one(connection)
    .await
    .map_err(|error| convert(STAGING, error))?;
    match (erased, holder) {
        (None, _) => Err(Error::Bug(format!(
            "an object of session {session}, which has no row, was staged"
        ))),
        (Some(true), _) => Ok(Staged::Erased),
        (_, Some(holder)) if holder != session.0 => {
            Err(Error::Bug(format!("object {key} is staged for another session")))
        }
        // Condemned then, even if the row has gone since.
        _ => Ok(Staged::Condemned),
    }
}
