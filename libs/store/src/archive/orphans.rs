//! An object that nobody records is condemned before it is deleted.
//!
//! An object's key names its content, so an archiver may stage a key again while an object of that key is being
//! deleted. Condemned, committed, deleted, forgotten, in this order: whoever staged it before finds its staged row
//! condemned or gone, and whoever wants to stage it has to wait until the object is gone.

use std::collections::HashSet;
use std::time::Duration;

use wakelog_model::SessionId;

use super::{commit, seconds};
use crate::error::{During, convert};
use crate::store::give_up;
use crate::{Error, Store};

/// Keys that one query asks for, at most.
const KEYS_PER_QUERY: usize = 1_000;

const CONDEMNATION: &str = "condemnation";
const KNOWN: During = During::Statement("known objects");

impl Store {
    /// Those of the keys that the manifest has.
    pub async fn known_objects(&self, keys: &[String]) -> Result<HashSet<String>, Error> {
        let mut known = HashSet::new();
        for some in keys.chunks(KEYS_PER_QUERY) {
            let mut connection = self.acquire().await?;
            let found: Vec<String> = sqlx::query_scalar(
                "SELECT object_key FROM agent_session_archive_segments WHERE object_key = ANY($1)",
            )
            .bind(some)
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| convert(KNOWN, error))?;
            known.extend(found);
        }
        Ok(known)
    }

    /// Whether the object may be deleted now: the manifest does not have it, and nobody staged it within `older_than`.
    /// From then on nobody can stage or record it, until [`Self::forget_condemned`]. One that is condemned already may
    /// still be deleted: whoever condemned it may have died.
    ///
    /// [`Error::ArchiveCommitUnknown`]: ask again. A staged row that is that old and whose object is recorded protects
    /// nothing and goes.
    pub async fn condemn_object(
        &self,
        session: SessionId,
        key: &str,
        older_than: Duration,
    ) -> Result<bool, Error> {
        const DURING: During = During::Archive(CONDEMNATION);
        let mut transaction = self.begin().await?;
        let held = sqlx::query(
            "INSERT INTO archive_staged_objects AS stored (object_key, session_id, condemned_at)
             VALUES ($1, $2, now())
             ON CONFLICT (object_key) DO UPDATE SET condemned_at = coalesce(stored.condemned_at, now())
             WHERE stored.condemned_at IS NOT NULL OR stored.staged_at <= now() - make_interval(secs => $3)",
        )
        .bind(key)
        .bind(session.0)
        .bind(seconds(older_than))
        .execute(&mut *transaction)
        .await
        .map_err(|error| convert(DURING, error))?;
        if held.rows_affected() == 0 {
            give_up(transaction).await;
            return Ok(false);
        }
        // A statement of its own: the one before may have waited for a flush, whose manifest row it would not see.
        let recorded = sqlx::query(
            "DELETE FROM archive_staged_objects WHERE object_key = $1
               AND EXISTS (SELECT FROM agent_session_archive_segments WHERE object_key = $1)",
        )
        .bind(key)
        .execute(&mut *transaction)
        .await
        .map_err(|error| convert(DURING, error))?
        .rows_affected()
            > 0;
        commit(transaction, CONDEMNATION).await?;
        Ok(!recorded)
    }

    /// The keys that have been condemned for longer than this, `limit` of them and the oldest first: whoever condemned
    /// them may have died. Nobody can stage such a key until it is forgotten.
    pub async fn condemned_objects(&self, longer_than: Duration, limit: u32) -> Result<Vec<String>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query_scalar(
            "SELECT object_key FROM archive_staged_objects
             WHERE condemned_at <= now() - make_interval(secs => $1) ORDER BY condemned_at, object_key LIMIT $2",
        )
        .bind(seconds(longer_than))
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(During::Statement("condemned objects"), error))
    }

    /// Lets the key be staged again, once the condemned object is deleted.
    pub async fn forget_condemned(&self, key: &str) -> Result<(), Error> {
        let mut connection = self.acquire().await?;
        sqlx::query("DELETE FROM archive_staged_objects WHERE object_key = $1 AND condemned_at IS NOT NULL")
            .bind(key)
            .execute(&mut *connection)
            .await
            .map_err(|error| convert(During::Statement("condemned object"), error))?;
        Ok(())
    }
}
