//! What the tests of several modules need.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use wakelog_model::{SessionId, encode_part, part_digest, split_parts};
use wakelog_store::{PartRow, SessionRow};

use crate::Error;
use crate::body::PageSource;

pub(crate) fn session() -> SessionId {
    SessionId::for_request("ann", "one")
}

pub(crate) fn session_row(session: SessionId, change: impl FnOnce(&mut SessionRow)) -> SessionRow {
    let mut row = SessionRow {
        session,
        partition: 0,
        owner: "ann".to_owned(),
        labels: Default::default(),
        parent: None,
        subpath: String::new(),
        last_entry_seq: 0,
        last_checkpoint_seq: 0,
        generation: 0,
        lifetime_status: 0,
        opened_at_ms: 0,
        opened_at_us: 0,
        updated_at_ms: 0,
    };
    change(&mut row);
    row
}

/// The rows of one entry, as the persister would store it.
pub(crate) fn entry(entry_seq: u64, checkpoint: bool, bytes: impl Into<Bytes>) -> Vec<PartRow> {
    let bytes = bytes.into();
    let parts: Vec<Bytes> = split_parts(&bytes).collect();
    let count = parts.len();
    parts
        .into_iter()
        .enumerate()
        .map(|(at, plain)| {
            let (encoding, body) = encode_part(&plain);
            PartRow {
                session: session(),
                entry_seq,
                part: at as u32,
                last: at + 1 == count,
                checkpoint,
                generation: 1,
                encoding: encoding as i32,
                plain_length: plain.len() as u32,
                part_digest: part_digest(&plain),
                body,
            }
        })
        .collect()
}

/// Pages out of memory, and how many were asked for.
#[derive(Clone, Default)]
pub(crate) struct Pages {
    pub(crate) rows: Arc<Mutex<Vec<PartRow>>>,
    pub(crate) asked: Arc<AtomicUsize>,
    pub(crate) fail_from: Option<usize>,
}

impl Pages {
    pub(crate) fn of(entries: impl IntoIterator<Item = Vec<PartRow>>) -> Self {
        Self {
            rows: Arc::new(Mutex::new(entries.into_iter().flatten().collect())),
            ..Self::default()
        }
    }
}

impl PageSource for Pages {
    async fn page(
        &self,
        session: SessionId,
        after: Option<(u64, u32)>,
        last: u64,
        max_bytes: usize,
    ) -> Result<Vec<PartRow>, Error> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        if self.fail_from.is_some_and(|from| asked >= from) {
            return Err(Error::Failpoint("pages"));
        }
        let rows = self.rows.lock().unwrap();
        let mut page = Vec::new();
        let mut bytes = 0;
        for row in rows
            .iter()
            .filter(|row| row.session == session && row.entry_seq <= last)
        {
            if after.is_some_and(|after| (row.entry_seq, row.part) <= after) {
                continue;
            }
            if !page.is_empty() && bytes + row.plain_length as usize > max_bytes {
                break;
            }
            bytes += row.plain_length as usize;
            page.push(row.clone());
        }
        Ok(page)
    }
}
