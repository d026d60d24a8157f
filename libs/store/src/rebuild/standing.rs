//! How far a rebuild has come, and that it starts on an empty store.

use std::fmt;

use sqlx::{PgConnection, Row as _};

use super::rows::{Rebuild, RebuildPlan};
use crate::archive::commit;
use crate::error::{During, convert};
use crate::numbers::{from_integer, to_integer};
use crate::store::give_up;
use crate::{Error, Store};

pub(super) const REBUILD: &str = "rebuild";

const STANDING: During = During::Statement("standing of a rebuild");
const CHANGE: During = During::Archive(REBUILD);

/// Names the lock of a rebuild among a database's advisory locks: "wakelog" and a number.
const LOCK: i64 = 0x7761_6b65_6c6f_6701;

/// Whoever holds it is the only one that rebuilds the store. Dropping it gives it back, and so does the end of its connection.
pub struct RebuildLock {
    _connection: PgConnection,
}

impl fmt::Debug for RebuildLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RebuildLock").finish_non_exhaustive()
    }
}

/// What a store that holds nothing has no row of.
const FULL: &str = "SELECT EXISTS (SELECT FROM agent_sessions) OR EXISTS (SELECT FROM session_pins)
                       OR EXISTS (SELECT FROM stream_progress WHERE next_offset > 0)
                       OR EXISTS (SELECT FROM quarantined_records)
                       OR EXISTS (SELECT FROM agent_session_archive_segments)";

impl Store {
    /// Keeps others from rebuilding the same store: two would clear each other's pieces. `None`: somebody does. Takes a connection
    /// of its own, so not for a server that has only one.
    pub async fn lock_rebuild(&self) -> Result<Option<RebuildLock>, Error> {
        let mut connection = self.connect_outside_pool().await?;
        let locked: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
            .bind(LOCK)
            .fetch_one(&mut connection)
            .await
            .map_err(|error| convert(STANDING, error))?;
        Ok(locked.then_some(RebuildLock {
            _connection: connection,
        }))
    }

    /// The rebuild that this store was made by, or is being made by; `None`: it was not.
    pub async fn rebuild(&self) -> Result<Option<Rebuild>, Error> {
        let mut connection = self.acquire().await?;
        read(&mut connection).await
    }

    /// Begins a rebuild, and each partition where the plan says. [`Error::NotEmpty`] if the store holds anything, or was begun
    /// by another rebuild.
    pub async fn begin_rebuild(&self, plan: &RebuildPlan) -> Result<(), Error> {
        let mut transaction = self.begin().await?;
        match begin(&mut transaction, plan).await {
            Ok(()) => commit(transaction, REBUILD).await,
            Err(error) => {
                give_up(transaction).await;
                Err(error)
            }
        }
    }

    /// Marks the states of the archive as loaded: from now on none is taken.
    pub async fn mark_states_loaded(&self) -> Result<(), Error> {
        self.change_rebuild("UPDATE store_rebuilds SET states_loaded = true WHERE finished_at IS NULL")
            .await
    }

    /// Ends the rebuild: services may use the store.
    pub async fn finish_rebuild(&self) -> Result<(), Error> {
        self.change_rebuild("UPDATE store_rebuilds SET finished_at = now() WHERE finished_at IS NULL")
            .await
    }

    async fn change_rebuild(&self, statement: &'static str) -> Result<(), Error> {
        let mut connection = self.acquire().await?;
        let changed = sqlx::query(statement)
            .execute(&mut *connection)
            .await
            .map_err(|error| convert(STANDING, error))?;
        match changed.rows_affected() {
            1 => Ok(()),
            _ => Err(Error::Bug("no rebuild is under way".to_owned())),
        }
    }
}

async fn read(connection: &mut PgConnection) -> Result<Option<Rebuild>, Error> {
    let convert = |error| convert(STANDING, error);
    let row = sqlx::query(
        "SELECT topic, from_archive, incarnation, states_loaded, finished_at IS NOT NULL AS finished
         FROM store_rebuilds ORDER BY topic LIMIT 1",
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(convert)?;
    let Some(row) = row else {
        return Ok(None);
    };
    let topic: String = row.try_get("topic").map_err(convert)?;
    let starts = sqlx::query_as(
        "SELECT partition, start_offset FROM store_rebuild_partitions WHERE topic = $1 ORDER BY partition",
    )
    .bind(&topic)
    .fetch_all(connection)
    .await
    .map_err(convert)?;
    Ok(Some(Rebuild {
        topic,
        from_archive: row.try_get("from_archive").map_err(convert)?,
        incarnation: from_integer("incarnation", row.try_get("incarnation").map_err(convert)?)?,
        states_loaded: row.try_get("states_loaded").map_err(convert)?,
        finished: row.try_get("finished").map_err(convert)?,
        starts,
    }))
}

async fn begin(connection: &mut PgConnection, plan: &RebuildPlan) -> Result<(), Error> {
    let convert = |error| convert(CHANGE, error);
    let incarnation = to_integer("incarnation", plan.incarnation)?;
    // The row first: of two that begin at once the second waits here, and then finds it.
    let begun = sqlx::query(
        "INSERT INTO store_rebuilds (topic, from_archive, incarnation, states_loaded) VALUES ($1, $2, $3, NOT $2)
         ON CONFLICT (topic) DO NOTHING",
    )
    .bind(&plan.topic)
    .bind(plan.from_archive)
    .bind(incarnation)
    .execute(&mut *connection)
    .await
    .map_err(convert)?;
    let is_full: bool = sqlx::query_scalar(FULL)
        .fetch_one(&mut *connection)
        .await
        .map_err(convert)?;
    if is_full || begun.rows_affected() == 0 {
        return Err(Error::NotEmpty);
    }
    if plan.incarnation > 1 {
        sqlx::query(
            "INSERT INTO topic_incarnations (topic, incarnation) VALUES ($1, $2)
             ON CONFLICT (topic) DO UPDATE SET incarnation = excluded.incarnation",
        )
        .bind(&plan.topic)
        .bind(incarnation)
        .execute(&mut *connection)
        .await
        .map_err(convert)?;
    }
    for start in &plan.starts {
        sqlx::query(
            "WITH started AS (
                 INSERT INTO store_rebuild_partitions (topic, partition, start_offset) VALUES ($1, $2, $3)
             )
             INSERT INTO stream_progress AS held (topic, partition, epoch, next_offset, last_record_crc)
             VALUES ($1, $2, 0, $3, $4)
             ON CONFLICT (topic, partition) DO UPDATE
             SET next_offset = excluded.next_offset, last_record_crc = excluded.last_record_crc, updated_at = now()
             WHERE held.next_offset = 0",
        )
        .bind(&plan.topic)
        .bind(start.partition)
        .bind(start.start_offset)
        .bind(start.last_record_crc.map(i64::from))
        .execute(&mut *connection)
        .await
        .map_err(convert)?;
    }
    Ok(())
}
