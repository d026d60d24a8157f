//! Records of a range, decoded ahead of what is folded.

use tokio::sync::mpsc;
use wakelog_stream::{Error as StreamError, LogReader, Record};

use crate::Error;
use crate::decode::{Decoded, decode};

/// Records and bytes of a batch, about: one batch is one transaction. The bytes are less than what a range holds for its reader.
const BATCH_RECORDS: usize = 1_000;
const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// Batches that are decoded while one is folded.
const AHEAD: usize = 2;

/// Records that follow each other.
#[derive(Debug)]
pub(super) struct DecodedBatch {
    pub(super) records: Vec<Decoded>,
    /// The offset after the last one.
    pub(super) to: i64,
    /// Checksum of the last one.
    pub(super) last_record_crc: u32,
}

/// Reads the records `[from, to)` of the partition. Ends after the last one, or after an error.
pub(super) fn decoded_batches(
    reader: &LogReader,
    partition: i32,
    from: i64,
    to: i64,
) -> mpsc::Receiver<Result<DecodedBatch, Error>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let mut range = reader.read_range(partition, from, to);
    tokio::spawn(async move {
        while let Some(batch) = next_batch(&mut range).await {
            let is_last = batch.is_err();
            if sender.send(batch).await.is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

async fn next_batch(
    range: &mut mpsc::Receiver<Result<Record, StreamError>>,
) -> Option<Result<DecodedBatch, Error>> {
    let mut records = Vec::new();
    let mut bytes = 0;
    while records.len() < BATCH_RECORDS && bytes < BATCH_BYTES {
        match range.recv().await {
            None => break,
            Some(Err(error)) => return Some(Err(error.into())),
            Some(Ok(record)) => {
                bytes += record.len();
                records.push(record);
            }
        }
    }
    let last = records.last()?;
    let (to, last_record_crc) = (last.offset + 1, last.crc());
    // Opening bodies and hashing them is work for a core of its own.
    let decoding = tokio::task::spawn_blocking(move || records.iter().map(decode).collect::<Vec<Decoded>>());
    let decoded = decoding.await.map_err(|error| Error::Bug {
        detail: format!("decoding a batch failed: {error}"),
    });
    Some(decoded.map(|records| DecodedBatch {
        records,
        to,
        last_record_crc,
    }))
}
