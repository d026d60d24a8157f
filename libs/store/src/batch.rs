//! One batch of a partition, exactly once (exactly-once-fold).
//!
//! The progress row is locked first and moved last, in the transaction that stores what the batch folded to. So a
//! batch is stored with its offsets or not at all, and an owner that was fenced stores nothing.

pub(crate) mod entries;
mod quarantine;
pub(crate) mod sessions;

use std::collections::HashMap;
use std::time::Instant;

use bytes::Bytes;
use fail::fail_point;
use sqlx::{Postgres, Row as _, Transaction};
use uuid::Uuid;
use wakelog_model::SessionId;

use crate::error::{During, convert};
use crate::rows::BatchWrites;
use crate::store::give_up;
use crate::{Error, Store};

const PROGRESS: During = During::Batch("the partition's progress");

/// A session as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedSession {
    /// The encoded state of the fold.
    pub state: Bytes,
    /// Whether the session, or one that it descends from, is erased.
    pub root_erased: bool,
}

/// The transaction of one batch. Dropping it rolls back.
#[derive(Debug)]
pub struct Batch {
    transaction: Transaction<'static, Postgres>,
    topic: String,
    partition: i32,
    epoch: i64,
    next_offset: i64,
    begun: Instant,
}

impl Store {
    /// Begins the batch that starts at `next_offset`, as the owner with `epoch`. Holds the partition's row until the
    /// batch ends, and one connection.
    pub async fn begin_batch(
        &self,
        topic: &str,
        partition: i32,
        epoch: i64,
        next_offset: i64,
    ) -> Result<Batch, Error> {
        fail_point!("store::before_begin", |_| Err(Error::Failpoint {
            name: "store::before_begin"
        }));
        let begun = Instant::now();
        let mut transaction = self.begin().await?;
        let progress = sqlx::query(
            "SELECT epoch, next_offset FROM stream_progress WHERE topic = $1 AND partition = $2 FOR UPDATE",
        )
        .bind(topic)
        .bind(partition)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(|error| convert(PROGRESS, error))?;
        let (current_epoch, current_offset): (i64, i64) = match progress {
            None => (0, 0),
            Some(row) => (
                row.try_get("epoch").map_err(|error| convert(PROGRESS, error))?,
                row.try_get("next_offset")
                    .map_err(|error| convert(PROGRESS, error))?,
            ),
        };
        let batch = Batch {
            transaction,
            topic: topic.to_owned(),
            partition,
            epoch,
            next_offset,
            begun,
        };
        if current_epoch != epoch {
            count_batch("fenced");
            let topic = topic.to_owned();
            give_up(batch.transaction).await;
            return Err(Error::Fenced {
                topic,
                partition,
                held: epoch,
                current: current_epoch,
            });
        }
        if current_offset != next_offset {
            count_batch("offset_mismatch");
            let topic = topic.to_owned();
            give_up(batch.transaction).await;
            return Err(Error::OffsetMismatch {
                topic,
                partition,
                held: next_offset,
                current: current_offset,
            });
        }
        fail_point!("store::after_lock", |_| Err(Error::Failpoint {
            name: "store::after_lock"
        }));
        Ok(batch)
    }
}

impl Batch {
    /// The states of the sessions that are known. Loaded under the partition's lock: nobody else can change them.
    pub async fn load_sessions(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<HashMap<SessionId, LoadedSession>, Error> {
        if sessions.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<Uuid> = sessions.iter().map(|session| session.0).collect();
        let rows: Vec<(Uuid, Vec<u8>, bool)> = sqlx::query_as(
            "SELECT session_id, fold_state, erased FROM agent_sessions WHERE session_id = ANY($1)",
        )
        .bind(ids)
        .fetch_all(&mut *self.transaction)
        .await
        .map_err(|error| convert(During::Batch("session"), error))?;
        Ok(rows
            .into_iter()
            .map(|(session, state, root_erased)| {
                (
                    SessionId(session),
                    LoadedSession {
                        state: Bytes::from(state),
                        root_erased,
                    },
                )
            })
            .collect())
    }

    /// Writes what the batch folded to: deletes first, inserts in the order of their keys, erasure last. A key that is
    /// there already is [`Error::Bug`]: the fold decides what is a duplicate, never the database. After an error the
    /// batch can only be rolled back.
    pub async fn write(&mut self, writes: &BatchWrites) -> Result<(), Error> {
        let transaction = &mut *self.transaction;
        entries::delete_discarded(transaction, &writes.discarded_entries).await?;
        sessions::upsert_sessions(transaction, &writes.sessions).await?;
        sessions::upsert_lifetimes(transaction, &writes.lifetimes).await?;
        sessions::write_access(transaction, &writes.access).await?;
        entries::insert_parts(transaction, &writes.parts).await?;
        quarantine::insert_quarantined(transaction, &writes.quarantined).await?;
        sessions::erase(transaction, &writes.erased).await?;
        fail_point!("store::after_write", |_| Err(Error::Failpoint {
            name: "store::after_write"
        }));
        Ok(())
    }

    /// Moves the partition to `next_offset` and commits. [`Error::CommitUnknown`] if COMMIT was sent and has no known
    /// answer; any other error means that nothing of the batch is stored.
    pub async fn commit(mut self, next_offset: i64, last_record_crc: u32) -> Result<(), Error> {
        // In a transaction that has failed the server answers COMMIT with a silent rollback; this statement fails
        // there, so COMMIT is sent only in one that has not.
        let moved = sqlx::query(
            "UPDATE stream_progress SET next_offset = $5, last_record_crc = $6, updated_at = now()
             WHERE topic = $1 AND partition = $2 AND epoch = $3 AND next_offset = $4",
        )
        .bind(&self.topic)
        .bind(self.partition)
        .bind(self.epoch)
        .bind(self.next_offset)
        .bind(next_offset)
        .bind(i64::from(last_record_crc))
        .execute(&mut *self.transaction)
        .await
        .map_err(|error| convert(PROGRESS, error))?;
        if moved.rows_affected() != 1 {
            return Err(Error::Bug(
                "the partition's progress changed under the batch's lock".to_owned(),
            ));
        }
        fail_point!("store::before_commit", |_| Err(Error::Failpoint {
            name: "store::before_commit"
        }));
        if let Err(error) = self.transaction.commit().await {
            let error = convert(During::Commit, error);
            count_batch(if matches!(error, Error::CommitUnknown { .. }) {
                "commit_unknown"
            } else {
                "aborted"
            });
            return Err(error);
        }
        count_batch("committed");
        metrics::histogram!("wakelog_store_batch_seconds").record(self.begun.elapsed().as_secs_f64());
        fail_point!("store::after_commit", |_| Err(Error::CommitUnknown {
            reason: "failpoint store::after_commit".to_owned()
        }));
        Ok(())
    }

    /// Rolls back.
    pub async fn rollback(self) -> Result<(), Error> {
        count_batch("rolled_back");
        self.transaction
            .rollback()
            .await
            .map_err(|error| convert(During::Batch("rollback"), error))
    }
}

/// Every array of one UNNEST must have the same length: Postgres fills up the shorter ones with NULL.
fn assert_equal_lengths(table: &'static str, lengths: &[usize]) -> Result<(), Error> {
    if lengths.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(());
    }
    Err(Error::Bug(format!(
        "{table}: columns of different lengths: {lengths:?}"
    )))
}

/// A row that an insert or a write-once upsert left out.
fn assert_all_written(table: &'static str, rows: usize, affected: u64) -> Result<(), Error> {
    if crate::numbers::count(rows) == affected {
        return Ok(());
    }
    Err(Error::Bug(format!(
        "{table}: {affected} of {rows} rows were written, the others differ in what is written once"
    )))
}

fn count_batch(outcome: &'static str) {
    metrics::counter!("wakelog_store_batches_total", "outcome" => outcome).increment(1);
}

#[cfg(test)]
mod tests;
