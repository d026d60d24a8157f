//! Raw `UNNEST`: the rows that the persister would write, into a copy of its table.

use std::time::{Duration, Instant};

use futures::future::try_join_all;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;
use wakelog_proto::v1::EntryPart;

use crate::Error;
use crate::pipeline::HeldSession;

/// Rows of one statement: what the persister takes for one batch, at most.
pub(crate) const BATCH_ROWS: usize = 500;

const TABLE: &str = "bench_raw_entries";

/// One statement's columns.
#[derive(Debug, Default, Clone)]
pub(crate) struct RawBatch {
    sessions: Vec<Uuid>,
    entries: Vec<i64>,
    parts: Vec<i32>,
    lasts: Vec<bool>,
    checkpoints: Vec<bool>,
    generations: Vec<i64>,
    encodings: Vec<i16>,
    lengths: Vec<i32>,
    digests: Vec<Vec<u8>>,
    bodies: Vec<Vec<u8>>,
}

impl RawBatch {
    fn push(&mut self, session: &HeldSession, part: &EntryPart) -> Result<(), Error> {
        let id = Uuid::parse_str(&session.id).map_err(|error| Error::Wrong(error.to_string()))?;
        self.sessions.push(id);
        self.entries.push(part.lifetime_seq as i64);
        self.parts.push(part.part as i32);
        self.lasts.push(part.last);
        self.checkpoints.push(part.checkpoint);
        self.generations.push(part.generation as i64);
        self.encodings.push(part.encoding as i16);
        self.lengths.push(part.plain_length as i32);
        self.digests.push(part.part_digest.to_vec());
        self.bodies.push(part.body.to_vec());
        Ok(())
    }
}

/// The batches of each partition, in the order of its records.
pub(crate) fn batches_by_partition<'a>(
    partitions: usize,
    parts: impl Iterator<Item = (&'a HeldSession, EntryPart)>,
) -> Result<Vec<Vec<RawBatch>>, Error> {
    let mut batches = vec![vec![RawBatch::default()]; partitions];
    for (session, part) in parts {
        let of_partition = &mut batches[session.partition as usize];
        if of_partition
            .last()
            .is_none_or(|batch| batch.sessions.len() >= BATCH_ROWS)
        {
            of_partition.push(RawBatch::default());
        }
        if let Some(batch) = of_partition.last_mut() {
            batch.push(session, &part)?;
        }
    }
    Ok(batches)
}

/// Makes the copy: columns, constraints, indexes, storage, and the settings that `LIKE` leaves out.
pub(crate) async fn create_table(pool: &PgPool) -> Result<(), Error> {
    sqlx::query(AssertSqlSafe(format!(
        "CREATE TABLE {TABLE} (LIKE agent_session_transcript_entries INCLUDING ALL)"
    )))
    .execute(pool)
    .await?;
    let settings: Vec<String> = sqlx::query_scalar(
        "SELECT unnest(reloptions) FROM pg_class WHERE oid = 'agent_session_transcript_entries'::regclass",
    )
    .fetch_all(pool)
    .await?;
    sqlx::query(AssertSqlSafe(format!(
        "ALTER TABLE {TABLE} SET ({})",
        settings.join(", ")
    )))
    .execute(pool)
    .await?;
    Ok(())
}

/// Inserts all batches, each as a transaction, the partitions side by side. Returns how long it took.
pub(crate) async fn insert(pool: &PgPool, batches: Vec<Vec<RawBatch>>) -> Result<Duration, Error> {
    let started = Instant::now();
    try_join_all(batches.into_iter().map(|batches| async move {
        let mut connection = pool.acquire().await?;
        for batch in batches {
            sqlx::query(AssertSqlSafe(format!(
                "INSERT INTO {TABLE}
                     (session_id, entry_seq, part, last, checkpoint, generation, encoding, plain_length, part_digest, body)
                 SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::int[], $4::bool[], $5::bool[], $6::bigint[],
                                      $7::smallint[], $8::int[], $9::bytea[], $10::bytea[])"
            )))
            .bind(batch.sessions)
            .bind(batch.entries)
            .bind(batch.parts)
            .bind(batch.lasts)
            .bind(batch.checkpoints)
            .bind(batch.generations)
            .bind(batch.encodings)
            .bind(batch.lengths)
            .bind(batch.digests)
            .bind(batch.bodies)
            .execute(&mut *connection)
            .await?;
        }
        Ok::<(), Error>(())
    }))
    .await?;
    Ok(started.elapsed())
}
