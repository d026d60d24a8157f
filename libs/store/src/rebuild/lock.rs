//! Who may build the store: one process, and nobody uses it meanwhile.

use std::fmt;
use std::time::{Duration, Instant};

use sqlx::PgConnection;
use tokio::time::sleep;

use crate::error::{During, convert};
use crate::gate::LOCK;
use crate::{Error, Store};

const LOCKING: During = During::Statement("lock of a rebuild");
const TARGET: During = During::Statement("target of a rebuild");

/// How long connections of services that have just ended may take to be gone.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE_BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// What a store that holds nothing has no row of; these tables are there since the second migration.
const FULL: &str = "SELECT EXISTS (SELECT FROM agent_sessions) OR EXISTS (SELECT FROM session_pins)
                       OR EXISTS (SELECT FROM stream_progress WHERE next_offset > 0)
                       OR EXISTS (SELECT FROM quarantined_records)";

/// Whoever holds it is the only one that builds the store, and no guarded store is connected to the database. Dropping it gives
/// it back, and so does the end of its connection.
pub struct RebuildLock {
    pub(super) connection: PgConnection,
}

impl fmt::Debug for RebuildLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RebuildLock").finish_non_exhaustive()
    }
}

impl Store {
    /// Keeps everybody else out. [`Error::InUse`] if services are connected, [`Error::RebuildRunning`] if somebody else builds the
    /// store. Takes a connection of its own, so not for a server that has only one; the store must not be guarded itself.
    pub async fn lock_rebuild(&self) -> Result<RebuildLock, Error> {
        let mut connection = self.connect_outside_pool().await?;
        let give_up = Instant::now() + PATIENCE;
        loop {
            if try_lock(&mut connection).await? {
                return Ok(RebuildLock { connection });
            }
            if Instant::now() >= give_up {
                return Err(holder(&mut connection).await?);
            }
            sleep(PAUSE_BETWEEN_TRIES).await;
        }
    }
}

/// A database that a rebuild may go into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebuildTarget {
    /// It holds nothing, perhaps not even tables.
    Empty,
    /// It holds a rebuild that was interrupted.
    Unfinished,
}

impl RebuildLock {
    /// What there is in the database that a rebuild may go on from. Asked before it is migrated. [`Error::NotEmpty`],
    /// [`Error::AlreadyBuilt`].
    pub async fn check_target(&mut self) -> Result<RebuildTarget, Error> {
        let convert = |error| convert(TARGET, error);
        let connection = &mut self.connection;
        let (has_tables, has_rebuilds): (bool, bool) = sqlx::query_as(
            "SELECT to_regclass('quarantined_records') IS NOT NULL, to_regclass('store_rebuilds') IS NOT NULL",
        )
        .fetch_one(&mut *connection)
        .await
        .map_err(convert)?;
        if has_rebuilds {
            let rebuild: Option<(String, bool)> = sqlx::query_as(
                "SELECT topic, finished_at IS NOT NULL FROM store_rebuilds ORDER BY topic LIMIT 1",
            )
            .fetch_optional(&mut *connection)
            .await
            .map_err(convert)?;
            match rebuild {
                Some((topic, true)) => return Err(Error::AlreadyBuilt { topic }),
                Some((_, false)) => return Ok(RebuildTarget::Unfinished),
                None => {}
            }
        }
        match has_tables && is_full(connection, TARGET).await? {
            true => Err(Error::NotEmpty),
            false => Ok(RebuildTarget::Empty),
        }
    }
}

pub(super) async fn is_full(connection: &mut PgConnection, during: During) -> Result<bool, Error> {
    sqlx::query_scalar(FULL)
        .fetch_one(connection)
        .await
        .map_err(|error| convert(during, error))
}

async fn try_lock(connection: &mut PgConnection) -> Result<bool, Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
        .bind(LOCK)
        .fetch_one(connection)
        .await
        .map_err(|error| convert(LOCKING, error))
}

/// Who has the lock: one that builds, or those that use the store.
async fn holder(connection: &mut PgConnection) -> Result<Error, Error> {
    let connections: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_locks
         WHERE locktype = 'advisory' AND granted AND mode = 'ShareLock' AND objsubid = 1
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
           AND (classid::bigint << 32 | objid::bigint) = $1",
    )
    .bind(LOCK)
    .fetch_one(connection)
    .await
    .map_err(|error| convert(LOCKING, error))?;
    Ok(match connections {
        0 => Error::RebuildRunning,
        connections => Error::InUse { connections },
    })
}
