//! How far a rebuild has come, and that it starts on an empty store.

use sqlx::{Connection as _, PgConnection, Postgres, Row as _, Transaction};

use super::lock::{RebuildLock, is_full};
use super::rows::{Rebuild, RebuildPlan, RebuildStart};
use crate::archive::commit;
use crate::error::{During, convert};
use crate::numbers::{from_integer, to_integer};
use crate::progress::{PROGRESS, claimed};
use crate::store::give_up;
use crate::{Claim, Error, Store};

pub(super) const REBUILD: &str = "rebuild";

const STANDING: During = During::Statement("standing of a rebuild");
const CHANGE: During = During::Archive(REBUILD);

impl RebuildLock {
    /// Begins a rebuild, and each partition where the plan says; every earlier owner of one is fenced. [`Error::NotEmpty`] if the
    /// store holds anything, or was begun by another rebuild.
    pub async fn begin(&mut self, plan: &RebuildPlan) -> Result<Rebuild, Error> {
        // On the lock's own connection: without the lock there is no commit.
        let mut transaction = self
            .connection
            .begin()
            .await
            .map_err(|error| convert(During::Acquire, error))?;
        let begun = begin(&mut transaction, plan).await;
        end(transaction, begun).await?;
        read(&mut self.connection)
            .await?
            .ok_or_else(|| Error::Bug("a rebuild that was begun is not there".to_owned()))
    }

    /// The rebuild that is under way, and fences whoever was at it; `None`: none was begun. [`Error::AlreadyBuilt`].
    pub async fn go_on(&mut self) -> Result<Option<Rebuild>, Error> {
        sqlx::query("UPDATE store_rebuilds SET epoch = epoch + 1 WHERE finished_at IS NULL")
            .execute(&mut self.connection)
            .await
            .map_err(|error| convert(STANDING, error))?;
        match read(&mut self.connection).await? {
            Some(rebuild) if rebuild.finished => Err(Error::AlreadyBuilt { topic: rebuild.topic }),
            rebuild => Ok(rebuild),
        }
    }
}

impl Store {
    /// The rebuild that this store was made by, or is being made by; `None`: it was not.
    pub async fn rebuild(&self) -> Result<Option<Rebuild>, Error> {
        let mut connection = self.acquire().await?;
        read(&mut connection).await
    }

    /// Makes the rebuild with this epoch the partition's owner. [`Error::RebuildFenced`].
    pub async fn claim_for_rebuild(&self, topic: &str, partition: i32, epoch: i64) -> Result<Claim, Error> {
        let mut connection = self.acquire().await?;
        let row = sqlx::query(
            "INSERT INTO stream_progress AS held (topic, partition, epoch, next_offset)
             SELECT $1, $2, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0
             WHERE EXISTS (SELECT FROM store_rebuilds WHERE epoch = $3 AND finished_at IS NULL)
             ON CONFLICT (topic, partition) DO UPDATE SET epoch = held.epoch + 1, updated_at = now()
             RETURNING partition, epoch, next_offset, last_record_crc",
        )
        .bind(topic)
        .bind(partition)
        .bind(epoch)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| convert(PROGRESS, error))?
        .ok_or(Error::RebuildFenced)?;
        claimed(&row)
    }

    /// Marks the states of the archive as loaded: from now on none is taken. [`Error::RebuildFenced`].
    pub async fn mark_states_loaded(&self, epoch: i64) -> Result<(), Error> {
        let mut transaction = self.restoring(epoch).await?;
        let marked = mark_loaded(&mut transaction).await;
        end(transaction, marked).await
    }

    /// Ends the rebuild: services may use the store. [`Error::RebuildFenced`].
    pub async fn finish_rebuild(&self, epoch: i64) -> Result<(), Error> {
        let mut connection = self.acquire().await?;
        let finished = sqlx::query(
            "UPDATE store_rebuilds SET finished_at = now() WHERE epoch = $1 AND states_loaded AND finished_at IS NULL",
        )
        .bind(epoch)
        .execute(&mut *connection)
        .await
        .map_err(|error| convert(STANDING, error))?;
        match finished.rows_affected() {
            1 => Ok(()),
            _ => Err(Error::RebuildFenced),
        }
    }

    /// A transaction in which states may be stored. Whoever goes on with the rebuild, or marks the states as loaded, waits for its
    /// end.
    pub(super) async fn restoring(&self, epoch: i64) -> Result<Transaction<'static, Postgres>, Error> {
        let mut transaction = self.begin().await?;
        let held = sqlx::query_scalar(
            "SELECT true FROM store_rebuilds WHERE epoch = $1 AND NOT states_loaded AND finished_at IS NULL FOR SHARE",
        )
        .bind(epoch)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(|error| convert(CHANGE, error));
        let held: Option<bool> = match held {
            Ok(held) => held,
            Err(error) => {
                give_up(transaction).await;
                return Err(error);
            }
        };
        if held.is_none() {
            give_up(transaction).await;
            return Err(Error::RebuildFenced);
        }
        Ok(transaction)
    }
}

async fn read(connection: &mut PgConnection) -> Result<Option<Rebuild>, Error> {
    let convert = |error| convert(STANDING, error);
    let row = sqlx::query(
        "SELECT topic, from_archive, incarnation, epoch, states_loaded, finished_at IS NOT NULL AS finished
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
        epoch: row.try_get("epoch").map_err(convert)?,
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
    let has_segments: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM agent_session_archive_segments)")
        .fetch_one(&mut *connection)
        .await
        .map_err(convert)?;
    if has_segments || begun.rows_affected() == 0 || is_full(connection, CHANGE).await? {
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
        begin_partition(connection, &plan.topic, start).await?;
    }
    Ok(())
}

/// Epochs of a new database would begin at 1 again, and somebody may still hold such a one of the database that was lost: the
/// time in milliseconds is above whatever was counted up one by one.
async fn begin_partition(
    connection: &mut PgConnection,
    topic: &str,
    start: &RebuildStart,
) -> Result<(), Error> {
    let begun = sqlx::query(
        "WITH started AS (
             INSERT INTO store_rebuild_partitions (topic, partition, start_offset) VALUES ($1, $2, $3)
         )
         INSERT INTO stream_progress AS held (topic, partition, epoch, next_offset, last_record_crc)
         VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $3, $4)
         ON CONFLICT (topic, partition) DO UPDATE
         SET epoch = greatest(held.epoch + 1, excluded.epoch), next_offset = excluded.next_offset,
             last_record_crc = excluded.last_record_crc, updated_at = now()
         WHERE held.next_offset = 0",
    )
    .bind(topic)
    .bind(start.partition)
    .bind(start.start_offset)
    .bind(start.last_record_crc.map(i64::from))
    .execute(connection)
    .await
    .map_err(|error| convert(CHANGE, error))?;
    match begun.rows_affected() {
        1 => Ok(()),
        // Somebody has folded a batch since the store was looked at.
        _ => Err(Error::NotEmpty),
    }
}

async fn mark_loaded(connection: &mut PgConnection) -> Result<(), Error> {
    let convert = |error| convert(CHANGE, error);
    let folded: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM store_rebuild_partitions JOIN stream_progress USING (topic, partition)
         WHERE start_offset > 0 AND next_offset <> start_offset",
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(convert)?;
    if folded > 0 {
        return Err(Error::Bug(format!(
            "{folded} partitions were folded before all states were loaded"
        )));
    }
    sqlx::query("UPDATE store_rebuilds SET states_loaded = true WHERE finished_at IS NULL")
        .execute(connection)
        .await
        .map_err(convert)?;
    Ok(())
}

/// Commits what went well.
pub(super) async fn end(
    transaction: Transaction<'_, Postgres>,
    outcome: Result<(), Error>,
) -> Result<(), Error> {
    match outcome {
        Ok(()) => commit(transaction, REBUILD).await,
        Err(error) => {
            give_up(transaction).await;
            Err(error)
        }
    }
}
