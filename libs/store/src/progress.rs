//! Claims of a partition: a new epoch fences the old owner.

use std::time::{Duration, Instant};

use sqlx::postgres::PgRow;
use sqlx::{Connection as _, PgConnection, Row as _};
use tokio::time::sleep;

use crate::error::{During, convert};
use crate::{Error, Store};

/// How long a terminated holder may take to be gone.
const TERMINATION_BOUND: Duration = Duration::from_secs(2);

/// How long a second claim waits before it is looked up who keeps it waiting, and between two looks.
const PAUSE_BETWEEN_LOOKS: Duration = Duration::from_millis(20);

pub(crate) const PROGRESS: During = During::Statement("the partition's progress");

/// What the new owner of a partition goes on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The owner's epoch; every earlier one is fenced.
    pub epoch: i64,
    /// The first offset that is not folded yet.
    pub next_offset: i64,
    /// CRC-32 of the last folded record; `None` before the first batch.
    pub last_record_crc: Option<u32>,
}

/// How far a partition is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The partition.
    pub partition: i32,
    /// The current owner's epoch.
    pub epoch: i64,
    /// The first offset that is not folded yet.
    pub next_offset: i64,
    /// CRC-32 of the last folded record; `None` before the first batch.
    pub last_record_crc: Option<u32>,
}

impl Store {
    /// Makes the caller the partition's owner and fences every earlier one.
    ///
    /// An earlier owner that is frozen inside a transaction holds the row: once the lock time-out has passed its
    /// connection is terminated and the claim is tried once more. Safe to cancel: a claim that nobody hears of fences
    /// the earlier owner and nothing else. [`Error::BeingBuilt`] while a rebuild of the store is unfinished.
    pub async fn claim_partition(&self, topic: &str, partition: i32) -> Result<Claim, Error> {
        let begun = Instant::now();
        let claimed = self.claim_within_bounds(topic, partition).await;
        metrics::histogram!("wakelog_store_claim_seconds").record(begun.elapsed().as_secs_f64());
        claimed
    }

    async fn claim_within_bounds(&self, topic: &str, partition: i32) -> Result<Claim, Error> {
        let mut connection = self.acquire().await?;
        let first = claim(&mut connection, topic, partition).await;
        if !matches!(first, Err(Error::LockTimedOut { .. })) {
            return first;
        }
        if self.options.max_connections == 1 {
            // The server takes no other connection: nobody of ours holds the row, and nobody could be asked.
            return first;
        }
        claim_from_holder(self, &mut connection, topic, partition).await
    }

    /// How far a partition is folded; `None` if it was never claimed.
    pub async fn progress(&self, topic: &str, partition: i32) -> Result<Option<Progress>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(
            "SELECT partition, epoch, next_offset, last_record_crc
             FROM stream_progress WHERE topic = $1 AND partition = $2",
        )
        .bind(topic)
        .bind(partition)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| convert(PROGRESS, error))?
        .map(|row| progress_of(&row))
        .transpose()
    }

    /// How far every claimed partition of the topic is folded, by partition.
    pub async fn progress_of_topic(&self, topic: &str) -> Result<Vec<Progress>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(
            "SELECT partition, epoch, next_offset, last_record_crc
             FROM stream_progress WHERE topic = $1 ORDER BY partition",
        )
        .bind(topic)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(PROGRESS, error))?
        .iter()
        .map(progress_of)
        .collect()
    }

    /// The topics of which records are folded, by name. A database belongs to one of them.
    pub async fn folded_topics(&self) -> Result<Vec<String>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query_scalar("SELECT DISTINCT topic FROM stream_progress WHERE next_offset > 0 ORDER BY topic")
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| convert(PROGRESS, error))
    }
}

/// Epochs begin with the time, in ms: one that the database lost, with the claim, is not given to another owner later.
/// One statement, so that there is no transaction that a cancelled caller could leave open.
async fn claim(connection: &mut PgConnection, topic: &str, partition: i32) -> Result<Claim, Error> {
    let row = sqlx::query(
        "INSERT INTO stream_progress AS held (topic, partition, epoch, next_offset)
         SELECT $1, $2, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0
         WHERE NOT EXISTS (SELECT FROM store_rebuilds WHERE finished_at IS NULL)
         ON CONFLICT (topic, partition) DO UPDATE SET epoch = greatest(held.epoch + 1, excluded.epoch), updated_at = now()
         RETURNING partition, epoch, next_offset, last_record_crc",
    )
    .bind(topic)
    .bind(partition)
    .fetch_optional(connection)
    .await
    .map_err(|error| convert(PROGRESS, error))?
    .ok_or(Error::BeingBuilt)?;
    claimed(&row)
}

/// The claim that a statement has returned.
pub(crate) fn claimed(row: &PgRow) -> Result<Claim, Error> {
    let Progress {
        partition: _,
        epoch,
        next_offset,
        last_record_crc,
    } = progress_of(row)?;
    metrics::counter!("wakelog_store_claims_total").increment(1);
    Ok(Claim {
        epoch,
        next_offset,
        last_record_crc,
    })
}

/// Claims once more, and meanwhile terminates whoever keeps the claim waiting.
///
/// Only a wait in progress tells who that is, so a second connection asks. It is made here and not taken from the
/// pool: holding one connection of a pool while waiting for another one is how pools get stuck.
async fn claim_from_holder(
    store: &Store,
    connection: &mut PgConnection,
    topic: &str,
    partition: i32,
) -> Result<Claim, Error> {
    let waiting: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| convert(PROGRESS, error))?;
    let mut other = store.connect_outside_pool().await?;
    let claiming = claim(connection, topic, partition);
    tokio::pin!(claiming);
    let claimed = loop {
        tokio::select! {
            claimed = &mut claiming => break claimed,
            () = sleep(PAUSE_BETWEEN_LOOKS) => {
                let terminated = terminate_holders(&mut other, waiting).await?;
                if terminated > 0 {
                    metrics::counter!("wakelog_store_holders_terminated_total").increment(terminated);
                    tracing::warn!(topic, partition, terminated, "terminated the partition's frozen holder");
                }
            }
        }
    };
    if let Err(error) = other.close().await {
        tracing::debug!(%error, "closing the connection that terminates holders failed");
    }
    claimed
}

/// Terminates what is at the end of the waits and itself waits for its client: not a rival claim that waits just the same, nor
/// one that has just got the row.
async fn terminate_holders(connection: &mut PgConnection, waiting: i32) -> Result<u64, Error> {
    let rows = sqlx::query(
        "WITH RECURSIVE ahead(pid) AS (
             SELECT unnest(pg_blocking_pids($1))
             UNION
             SELECT unnest(pg_blocking_pids(ahead.pid)) FROM ahead
         )
         SELECT pg_terminate_backend(pid, $2) FROM ahead JOIN pg_stat_activity AS holder USING (pid)
         WHERE pid <> $1 AND pid <> pg_backend_pid() AND cardinality(pg_blocking_pids(pid)) = 0
           AND holder.wait_event_type = 'Client'",
    )
    .bind(waiting)
    .bind(i64::try_from(TERMINATION_BOUND.as_millis()).unwrap_or(i64::MAX))
    .fetch_all(connection)
    .await
    .map_err(|error| convert(During::Statement("terminating the partition's holder"), error))?;
    Ok(crate::numbers::count(rows.len()))
}

fn progress_of(row: &PgRow) -> Result<Progress, Error> {
    let read = |error| convert(PROGRESS, error);
    let last_record_crc: Option<i64> = row.try_get("last_record_crc").map_err(read)?;
    Ok(Progress {
        partition: row.try_get("partition").map_err(read)?,
        epoch: row.try_get("epoch").map_err(read)?,
        next_offset: row.try_get("next_offset").map_err(read)?,
        last_record_crc: last_record_crc.map(stored_crc).transpose()?,
    })
}

pub(crate) fn stored_crc(crc: i64) -> Result<u32, Error> {
    u32::try_from(crc).map_err(|_| Error::Bug("stored last_record_crc is no CRC-32".to_owned()))
}
