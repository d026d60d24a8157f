//! Entries: what is discarded, what is inserted.

use sqlx::PgConnection;
use uuid::Uuid;
use wakelog_model::SessionId;

use super::{assert_all_written, assert_equal_lengths};
use crate::Error;
use crate::error::{During, convert};
use crate::numbers::{to_bigint, to_integer};
use crate::rows::PartRow;

const ENTRIES: &str = "agent_session_transcript_entries";

/// Bodies and rows of one insert, at most: the client and the server each hold an array of them.
const INSERT_BYTES: usize = 4 * 1024 * 1024;
const INSERT_ROWS: usize = 2_000;

/// Deletes unfinished entries. One that is complete is not for a batch to delete (put-before-prune).
pub(super) async fn delete_discarded(
    connection: &mut PgConnection,
    discarded: &[(SessionId, u64)],
) -> Result<(), Error> {
    if discarded.is_empty() {
        return Ok(());
    }
    let mut sorted = discarded.to_vec();
    sorted.sort_unstable();
    let ids: Vec<Uuid> = sorted.iter().map(|(session, _)| session.0).collect();
    let entries = sorted
        .iter()
        .map(|(_, entry)| to_bigint("entry_seq", *entry))
        .collect::<Result<Vec<i64>, _>>()?;
    assert_equal_lengths(ENTRIES, &[ids.len(), entries.len()])?;
    // The partition's lock is held and the sessions are not written yet: this is what was complete before the batch.
    let complete: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM unnest($1::uuid[], $2::bigint[]) AS gone(session_id, entry_seq)
         JOIN agent_sessions AS stored USING (session_id) WHERE gone.entry_seq <= stored.last_entry_seq",
    )
    .bind(&ids)
    .bind(&entries)
    .fetch_one(&mut *connection)
    .await
    .map_err(|error| convert(During::Batch(ENTRIES), error))?;
    if complete > 0 {
        return Err(Error::Bug(format!(
            "{complete} entries were to be discarded although they are complete"
        )));
    }
    sqlx::query(
        "DELETE FROM agent_session_transcript_entries AS stored
         USING unnest($1::uuid[], $2::bigint[]) AS gone(session_id, entry_seq)
         WHERE stored.session_id = gone.session_id AND stored.entry_seq = gone.entry_seq",
    )
    .bind(ids)
    .bind(entries)
    .execute(connection)
    .await
    .map_err(|error| convert(During::Batch(ENTRIES), error))?;
    Ok(())
}

pub(crate) async fn insert_parts(connection: &mut PgConnection, parts: &[PartRow]) -> Result<(), Error> {
    let mut sorted: Vec<&PartRow> = parts.iter().collect();
    sorted.sort_by_key(|part| (part.session, part.entry_seq, part.part));
    let mut rest = sorted.as_slice();
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rows_of_one_insert(rest));
        insert_some(connection, now).await?;
        rest = later;
    }
    let bytes: usize = parts.iter().map(|part| part.body.len()).sum();
    metrics::counter!("wakelog_store_part_rows_total").increment(crate::numbers::count(parts.len()));
    metrics::counter!("wakelog_store_part_bytes_total").increment(crate::numbers::count(bytes));
    Ok(())
}

/// How many of the parts fit into one insert: at least one.
fn rows_of_one_insert(parts: &[&PartRow]) -> usize {
    let mut bytes = 0;
    for (row, part) in parts.iter().enumerate().take(INSERT_ROWS) {
        bytes += part.body.len();
        if row > 0 && bytes > INSERT_BYTES {
            return row;
        }
    }
    parts.len().min(INSERT_ROWS)
}

/// Rows come in the order of their key; the server keeps the order of the arrays.
async fn insert_some(connection: &mut PgConnection, parts: &[&PartRow]) -> Result<(), Error> {
    let ids: Vec<Uuid> = parts.iter().map(|part| part.session.0).collect();
    let entries = parts
        .iter()
        .map(|part| to_bigint("entry_seq", part.entry_seq))
        .collect::<Result<Vec<_>, _>>()?;
    let numbers = parts
        .iter()
        .map(|part| to_integer("part", part.part))
        .collect::<Result<Vec<_>, _>>()?;
    let lasts: Vec<bool> = parts.iter().map(|part| part.last).collect();
    let checkpoints: Vec<bool> = parts.iter().map(|part| part.checkpoint).collect();
    let generations = parts
        .iter()
        .map(|part| to_bigint("generation", part.generation))
        .collect::<Result<Vec<_>, _>>()?;
    let encodings = parts
        .iter()
        .map(|part| encoding(part.encoding))
        .collect::<Result<Vec<_>, _>>()?;
    let lengths = parts
        .iter()
        .map(|part| to_integer("plain_length", part.plain_length))
        .collect::<Result<Vec<_>, _>>()?;
    let digests: Vec<&[u8]> = parts.iter().map(|part| part.part_digest.as_bytes()).collect();
    let bodies: Vec<&[u8]> = parts.iter().map(|part| part.body.as_ref()).collect();
    assert_equal_lengths(
        ENTRIES,
        &[
            ids.len(),
            entries.len(),
            numbers.len(),
            lasts.len(),
            checkpoints.len(),
            generations.len(),
            encodings.len(),
            lengths.len(),
            digests.len(),
            bodies.len(),
        ],
    )?;
    let written = sqlx::query(
        "INSERT INTO agent_session_transcript_entries
                (session_id, entry_seq, part, last, checkpoint, generation, encoding, plain_length, part_digest, body)
         SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::int[], $4::bool[], $5::bool[], $6::bigint[],
                              $7::smallint[], $8::int[], $9::bytea[], $10::bytea[])",
    )
    .bind(ids)
    .bind(entries)
    .bind(numbers)
    .bind(lasts)
    .bind(checkpoints)
    .bind(generations)
    .bind(encodings)
    .bind(lengths)
    .bind(digests)
    .bind(bodies)
    .execute(connection)
    .await
    .map_err(|error| convert(During::Batch(ENTRIES), error))?;
    assert_all_written(ENTRIES, parts.len(), written.rows_affected())
}

fn encoding(code: i32) -> Result<i16, Error> {
    i16::try_from(code).map_err(|_| Error::Bug(format!("part encoding {code} is no smallint")))
}

#[cfg(test)]
mod tests;
