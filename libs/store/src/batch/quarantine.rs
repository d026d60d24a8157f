//! Records that the fold refused: kept raw up to a share of each key, then as length and SHA-256 only.

use std::collections::{BTreeSet, HashMap};

use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;

use super::{assert_all_written, assert_equal_lengths};
use crate::Error;
use crate::error::{During, convert};
use crate::numbers::{count, from_bigint, to_bigint};
use crate::rows::QuarantinedRecord;

const QUARANTINE: &str = "quarantined_records";

/// Records of one key that are kept raw, and their bytes.
const KEPT_RECORDS: u64 = 64;
const KEPT_BYTES: u64 = 1024 * 1024;

/// Bytes of a key that are stored as they are: an index can't take a key of any length.
const MAX_KEY_BYTES: usize = 256;
const HASHED_KEY_PREFIX: &[u8] = b"sha256:";

/// Characters of a detail.
const MAX_DETAIL_CHARS: usize = 1_000;

/// What is kept raw of one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Kept {
    records: u64,
    bytes: u64,
}

impl Kept {
    /// Takes a record's bytes into the key's share, if they still fit.
    fn admit(&mut self, bytes: u64) -> bool {
        let fits = self.records < KEPT_RECORDS && self.bytes.saturating_add(bytes) <= KEPT_BYTES;
        if fits {
            self.records += 1;
            self.bytes += bytes;
        }
        fits
    }
}

pub(super) async fn insert_quarantined(
    connection: &mut PgConnection,
    records: &[QuarantinedRecord],
) -> Result<(), Error> {
    if records.is_empty() {
        return Ok(());
    }
    let mut sorted: Vec<&QuarantinedRecord> = records.iter().collect();
    sorted.sort_by(|a, b| (&a.topic, a.partition, a.offset).cmp(&(&b.topic, b.partition, b.offset)));
    let keys: Vec<Vec<u8>> = sorted
        .iter()
        .map(|record| stored_key(&record.record_key))
        .collect();
    let mut kept = load_kept(connection, &keys).await?;

    let topics: Vec<&str> = sorted.iter().map(|record| record.topic.as_str()).collect();
    let partitions: Vec<i32> = sorted.iter().map(|record| record.partition).collect();
    let offsets: Vec<i64> = sorted.iter().map(|record| record.offset).collect();
    let reasons: Vec<&str> = sorted.iter().map(|record| record.reason).collect();
    let details: Vec<String> = sorted
        .iter()
        .map(|record| stored_detail(&record.detail))
        .collect();
    let mut raws: Vec<Option<&[u8]>> = Vec::with_capacity(sorted.len());
    for (record, key) in sorted.iter().zip(&keys) {
        let admitted = kept
            .entry(key.clone())
            .or_default()
            .admit(count(record.raw.len()));
        raws.push(admitted.then_some(record.raw.as_ref()));
    }
    let lengths = sorted
        .iter()
        .map(|record| to_bigint("raw_length", count(record.raw.len())))
        .collect::<Result<Vec<i64>, _>>()?;
    let hashes: Vec<Vec<u8>> = sorted
        .iter()
        .map(|record| Sha256::digest(&record.raw).to_vec())
        .collect();
    assert_equal_lengths(
        QUARANTINE,
        &[
            topics.len(),
            partitions.len(),
            offsets.len(),
            keys.len(),
            reasons.len(),
            details.len(),
            raws.len(),
            lengths.len(),
            hashes.len(),
        ],
    )?;
    let written = sqlx::query(
        "INSERT INTO quarantined_records
                (topic, partition, record_offset, record_key, reason, detail, raw, raw_length, raw_sha256)
         SELECT * FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bytea[], $5::text[], $6::text[], $7::bytea[],
                              $8::bigint[], $9::bytea[])",
    )
    .bind(topics)
    .bind(partitions)
    .bind(offsets)
    .bind(keys)
    .bind(reasons)
    .bind(details)
    .bind(raws)
    .bind(lengths)
    .bind(hashes)
    .execute(connection)
    .await
    .map_err(|error| convert(During::Batch(QUARANTINE), error))?;
    metrics::counter!("wakelog_store_quarantined_records_total").increment(count(records.len()));
    assert_all_written(QUARANTINE, records.len(), written.rows_affected())
}

/// What the store keeps raw of each key already. The partition's lock is held, and a key lives on one partition, so
/// nobody adds to it meanwhile.
async fn load_kept(connection: &mut PgConnection, keys: &[Vec<u8>]) -> Result<HashMap<Vec<u8>, Kept>, Error> {
    let distinct: Vec<&[u8]> = keys
        .iter()
        .map(Vec::as_slice)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let rows: Vec<(Vec<u8>, i64, i64)> = sqlx::query_as(
        "SELECT record_key, count(*), sum(raw_length)::bigint FROM quarantined_records
         WHERE record_key = ANY($1) AND raw IS NOT NULL GROUP BY record_key",
    )
    .bind(distinct)
    .fetch_all(connection)
    .await
    .map_err(|error| convert(During::Batch(QUARANTINE), error))?;
    rows.into_iter()
        .map(|(key, records, bytes)| {
            Ok((
                key,
                Kept {
                    records: from_bigint("count", records)?,
                    bytes: from_bigint("raw_length", bytes)?,
                },
            ))
        })
        .collect()
}

fn stored_key(key: &[u8]) -> Vec<u8> {
    if key.len() <= MAX_KEY_BYTES {
        return key.to_vec();
    }
    [HASHED_KEY_PREFIX, &Sha256::digest(key)].concat()
}

/// Text that the database takes: no NUL, and not of any length.
fn stored_detail(detail: &str) -> String {
    detail
        .chars()
        .take(MAX_DETAIL_CHARS)
        .map(|char| if char == '\0' { '\u{fffd}' } else { char })
        .collect()
}

#[cfg(test)]
mod tests;
