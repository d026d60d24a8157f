//! Entries without Wakelog, for their size: as rows that hold nothing but session, number and bytes, and as compressed files.

use bytes::Bytes;
use sqlx::PgPool;
use uuid::Uuid;

use super::compress::LEVEL;
use crate::Error;

/// Rows of one statement.
const BATCH_ROWS: usize = 500;

/// What the database needs for the sessions' entries as plain rows, in bytes: table, index and what is stored outside of the
/// rows, once nothing is to be cleaned up. The database compresses what it thinks is worth it.
pub(crate) async fn bytes_of_rows(pool: &PgPool, sessions: &[Vec<Bytes>]) -> Result<i64, Error> {
    sqlx::query("DROP TABLE IF EXISTS bench_plain_entries")
        .execute(pool)
        .await?;
    sqlx::query(
        "CREATE TABLE bench_plain_entries
             (session_id uuid, entry_seq bigint, entry bytea NOT NULL, PRIMARY KEY (session_id, entry_seq))
         WITH (fillfactor = 100)",
    )
    .execute(pool)
    .await?;
    let empty = table_bytes(pool, "bench_plain_entries").await?;
    for entries in sessions {
        let session = Uuid::from_u128(rand::random());
        let numbered: Vec<(i64, &[u8])> = (1..).zip(entries.iter().map(AsRef::as_ref)).collect();
        for batch in numbered.chunks(BATCH_ROWS) {
            let (numbers, bytes): (Vec<i64>, Vec<&[u8]>) = batch.iter().copied().unzip();
            sqlx::query(
                "INSERT INTO bench_plain_entries SELECT $1, entry_seq, entry
                 FROM unnest($2::bigint[], $3::bytea[]) AS given (entry_seq, entry)",
            )
            .bind(session)
            .bind(numbers)
            .bind(bytes)
            .execute(pool)
            .await?;
        }
    }
    Ok(table_bytes(pool, "bench_plain_entries").await? - empty)
}

/// What the database needs for a table once nothing is to be cleaned up, in bytes: rows, indexes, what is stored outside of
/// the rows, and the maps of free space.
pub(crate) async fn table_bytes(pool: &PgPool, table: &'static str) -> Result<i64, Error> {
    sqlx::query(sqlx::AssertSqlSafe(format!("VACUUM {table}")))
        .execute(pool)
        .await?;
    Ok(sqlx::query_scalar("SELECT pg_total_relation_size($1::regclass)")
        .bind(table)
        .fetch_one(pool)
        .await?)
}

/// The sessions as files, each compressed as a whole by the level that the archiver has, in bytes.
pub(crate) fn bytes_of_files(sessions: &[Vec<Bytes>]) -> Result<usize, Error> {
    let mut bytes = 0;
    for entries in sessions {
        let compressed = zstd::bulk::compress(&entries.concat(), LEVEL);
        bytes += compressed.map_err(|error| Error::io("compressing", error))?.len();
    }
    Ok(bytes)
}
