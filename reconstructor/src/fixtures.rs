//! What the tests of several modules need.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use wakelog_model::{SessionId, decode_part, encode_part, part_digest, split_parts};
use wakelog_store::{PartRow, SegmentKind, SegmentRow, SessionRow};

use crate::Error;
use crate::body::{OpenSegment, Part, PartSource};
use crate::sequence::PartHead;

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

/// Pages and segments out of memory, and how many were asked for.
#[derive(Clone, Default)]
pub(crate) struct Pages {
    pub(crate) rows: Arc<Mutex<Vec<PartRow>>>,
    #[allow(clippy::type_complexity, reason = "segments with their rows, in a fixture")]
    pub(crate) segments: Arc<Mutex<Vec<(SegmentRow, Vec<PartRow>)>>>,
    pub(crate) asked: Arc<AtomicUsize>,
    pub(crate) asked_manifest: Arc<AtomicUsize>,
    pub(crate) fail_from: Option<usize>,
    /// Segments that can be opened and not read to their end.
    pub(crate) unreadable: Arc<Mutex<HashSet<String>>>,
    /// Entries that are archived as soon as a page was read.
    pub(crate) flush_next: Arc<Mutex<VecDeque<(u64, u64)>>>,
}

impl Pages {
    pub(crate) fn of(entries: impl IntoIterator<Item = Vec<PartRow>>) -> Self {
        Self {
            rows: Arc::new(Mutex::new(entries.into_iter().flatten().collect())),
            ..Self::default()
        }
    }

    /// Copies these entries into a segment.
    pub(crate) fn copy(&self, first: u64, last: u64) -> String {
        let rows: Vec<PartRow> = self.rows.lock().unwrap().clone();
        let rows: Vec<PartRow> = rows
            .into_iter()
            .filter(|row| (first..=last).contains(&row.entry_seq))
            .collect();
        let mut segments = self.segments.lock().unwrap();
        let key = format!("{first}-{last}-{}", segments.len());
        let row = SegmentRow {
            session: session(),
            key: key.clone(),
            min_entry_seq: first,
            max_entry_seq: last,
            kind: SegmentKind::SafetyValve,
            entries: last - first + 1,
            plain_bytes: 1,
            object_bytes: 1,
            object_digest: [0; 32],
            archived_at_ms: 0,
        };
        segments.push((row, rows));
        key
    }

    /// Moves these entries into a segment.
    pub(crate) fn flush(&self, first: u64, last: u64) -> String {
        let key = self.copy(first, last);
        self.rows
            .lock()
            .unwrap()
            .retain(|row| !(first..=last).contains(&row.entry_seq));
        key
    }
}

/// Some entries of a segment in memory.
pub(crate) struct OpenPages {
    rows: VecDeque<PartRow>,
    unreadable: bool,
}

impl PartSource for Pages {
    type Segment = OpenPages;

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
        let page = {
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
            page
        };
        let flush = self.flush_next.lock().unwrap().pop_front();
        if let Some((first, last)) = flush {
            self.flush(first, last);
        }
        Ok(page)
    }

    async fn segments(&self, _: SessionId, first: u64, last: u64) -> Result<Vec<SegmentRow>, Error> {
        self.asked_manifest.fetch_add(1, Ordering::SeqCst);
        let segments = self.segments.lock().unwrap();
        let overlapping = segments
            .iter()
            .map(|(row, _)| row)
            .filter(|row| row.min_entry_seq <= last && row.max_entry_seq >= first);
        Ok(overlapping.cloned().collect())
    }

    async fn open(&self, segment: &SegmentRow, first: u64, last: u64) -> Result<OpenPages, Error> {
        let segments = self.segments.lock().unwrap();
        let found = segments.iter().find(|(row, _)| row.key == segment.key);
        let rows = found.unwrap().1.iter();
        Ok(OpenPages {
            rows: rows
                .filter(|row| (first..=last).contains(&row.entry_seq))
                .cloned()
                .collect(),
            unreadable: self.unreadable.lock().unwrap().contains(&segment.key),
        })
    }
}

impl OpenSegment for OpenPages {
    /// One part at a time, so that whoever takes them is interrupted at every place.
    async fn next_parts(&mut self, _: usize) -> Result<Vec<Part>, Error> {
        if self.unreadable && self.rows.len() < 2 {
            return Err(Error::Failpoint("segment"));
        }
        let row = self.rows.pop_front().into_iter();
        Ok(row
            .map(|row| Part {
                head: PartHead {
                    entry_seq: row.entry_seq,
                    part: row.part,
                    last: row.last,
                    checkpoint: row.checkpoint,
                    generation: row.generation,
                    plain_length: row.plain_length,
                },
                plain: decode_part(
                    row.encoding,
                    &row.body,
                    row.plain_length as usize,
                    row.part_digest,
                )
                .unwrap(),
            })
            .collect())
    }
}
