//! Fetching pages ahead of whoever takes them, from the hot tail, and where that has a hole, from the archive.
//!
//! Rows are asked for before the manifest: a row leaves the hot tail only in the transaction that records the segment which
//! holds it, so what was not there is in the manifest by then. A normal body has no hole and never looks at the archive.

use std::collections::{HashSet, VecDeque};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wakelog_model::decode_part;
use wakelog_model::limits::MAX_PARTS;
use wakelog_store::PartRow;

use super::source::{OpenSegment, PartSource};
use super::splice::{Piece, pieces};
use super::{Part, Range, corrupt};
use crate::sequence::PartHead;
use crate::{Error, metrics};

/// Pages that are fetched and wait for the page before them to be handed out. One more is under way.
pub(super) const PAGES_AHEAD: usize = 1;

/// Segments that are read at the same time, the one that is handed out included.
const SEGMENTS_AHEAD: usize = 3;

/// A page on its way to whoever takes it.
pub(super) enum Page {
    /// It is being decoded.
    Decoding(JoinHandle<Result<Vec<Part>, Error>>),
    /// Its parts.
    Parts(Vec<Part>),
}

/// Why the reading ends before its end.
enum Stop {
    /// Nobody takes pages any more.
    Gone,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Fetches page after page of the range, and an error as the last thing.
pub(super) async fn read_pages<S: PartSource>(
    source: S,
    range: Range,
    page_bytes: usize,
    pages: mpsc::Sender<Result<Page, Error>>,
) {
    let mut reading = Reading {
        source,
        range,
        page_bytes,
        due: (range.first, 0),
        pages,
    };
    if let Err(Stop::Failed(error)) = reading.run().await {
        // Nobody is there to be told: that is an answer too.
        reading.pages.send(Err(error)).await.ok();
    }
}

struct Reading<S> {
    source: S,
    range: Range,
    page_bytes: usize,
    /// The entry and part that come next.
    due: (u64, u32),
    pages: mpsc::Sender<Result<Page, Error>>,
}

impl<S: PartSource> Reading<S> {
    async fn run(&mut self) -> Result<(), Stop> {
        let Range { session, last, .. } = self.range;
        while self.due.0 <= last {
            let after = position_before(self.due);
            let mut rows = self.source.page(session, after, last, self.page_bytes).await?;
            let behind_hole = rows.split_off(run_length(&rows, self.due));
            if let Some(end) = rows.last() {
                self.due = position_after((end.entry_seq, end.part), end.last);
                let goes_on = behind_hole.is_empty();
                self.hand_out_rows(rows).await?;
                if goes_on {
                    continue;
                }
            }
            let hole_end = behind_hole
                .first()
                .map_or(last, |row| row.entry_seq.saturating_sub(1));
            if hole_end < self.due.0 || !self.fill_hole(hole_end).await? {
                // It is nowhere. What is there is handed out: the check of the order names what is missing.
                return self.hand_out_rows(behind_hole).await;
            }
        }
        Ok(())
    }

    /// Each page is decoded while the next one is fetched and the one before is handed out.
    async fn hand_out_rows(&self, rows: Vec<PartRow>) -> Result<(), Stop> {
        let range = self.range;
        let decode_all = move || rows.into_iter().map(|row| decode(range, row)).collect();
        self.hand_out(Page::Decoding(tokio::task::spawn_blocking(decode_all)))
            .await
    }

    async fn hand_out(&self, page: Page) -> Result<(), Stop> {
        self.pages.send(Ok(page)).await.map_err(|_| Stop::Gone)
    }

    /// Hands out what is due up to the entry `hole_end` from the archive. False: no segment holds what is due next.
    ///
    /// A segment that can't be read is passed over if another one holds the same entries; if none does, its error is the
    /// answer.
    async fn fill_hole(&mut self, hole_end: u64) -> Result<bool, Stop> {
        let mut unreadable: HashSet<String> = HashSet::new();
        let mut failure = None;
        while self.due.0 <= hole_end {
            let mut segments = self
                .source
                .segments(self.range.session, self.due.0, hole_end)
                .await?;
            segments.retain(|segment| !unreadable.contains(&segment.key));
            let plan = pieces(&segments, self.due.0, hole_end);
            if plan.is_empty() {
                return match failure {
                    Some(error) => Err(Stop::Failed(error)),
                    None => Ok(false),
                };
            }
            if let Some((key, error)) = self.hand_out_pieces(plan).await? {
                tracing::warn!(session = %self.range.session, segment = key, %error, "a segment can't be read");
                unreadable.insert(key);
                failure.get_or_insert(error);
            }
        }
        Ok(true)
    }

    /// Hands out the pieces in their order, some read ahead. Returns the segment that could not be read, if any: everything
    /// before it was handed out.
    async fn hand_out_pieces(&mut self, plan: Vec<Piece>) -> Result<Option<(String, Error)>, Stop> {
        let mut plan = plan.into_iter();
        let mut ahead = VecDeque::new();
        loop {
            while ahead.len() < SEGMENTS_AHEAD
                && let Some(piece) = plan.next()
            {
                ahead.push_back(self.start(piece));
            }
            let Some((key, mut batches)) = ahead.pop_front() else {
                return Ok(None);
            };
            while let Some(batch) = batches.recv().await {
                match batch {
                    Ok(parts) => self.hand_out_archived(parts).await?,
                    Err(error) => return Ok(Some((key, error))),
                }
            }
        }
    }

    async fn hand_out_archived(&mut self, mut parts: Vec<Part>) -> Result<(), Stop> {
        // The rows of an entry may have moved after some of its parts were handed out.
        parts.retain(|part| (part.head.entry_seq, part.head.part) >= self.due);
        let Some(end) = parts.last() else {
            return Ok(());
        };
        self.due = position_after((end.head.entry_seq, end.head.part), end.head.last);
        metrics::archived_bytes(parts.iter().map(|part| part.plain.len() as u64).sum());
        self.hand_out(Page::Parts(parts)).await
    }

    /// Starts to read a piece. The task ends by itself once nobody takes its parts any more.
    fn start(&self, piece: Piece) -> (String, mpsc::Receiver<Result<Vec<Part>, Error>>) {
        let (sender, receiver) = mpsc::channel(1);
        let (source, page_bytes) = (self.source.clone(), self.page_bytes);
        let key = piece.segment.key.clone();
        tokio::spawn(async move {
            if let Err(error) = read_piece(source, piece, page_bytes, &sender).await {
                sender.send(Err(error)).await.ok();
            }
        });
        (key, receiver)
    }
}

async fn read_piece<S: PartSource>(
    source: S,
    piece: Piece,
    page_bytes: usize,
    batches: &mpsc::Sender<Result<Vec<Part>, Error>>,
) -> Result<(), Error> {
    let mut segment = source.open(&piece.segment, piece.first, piece.last).await?;
    loop {
        let parts = segment.next_parts(page_bytes).await?;
        if parts.is_empty() || batches.send(Ok(parts)).await.is_err() {
            return Ok(());
        }
    }
}

/// How many of the rows follow each other, from `due` on.
fn run_length(rows: &[PartRow], mut due: (u64, u32)) -> usize {
    let mut follows = |row: &&PartRow| {
        let is_due = (row.entry_seq, row.part) == due;
        due = position_after((row.entry_seq, row.part), row.last);
        is_due
    };
    rows.iter().take_while(|row| follows(row)).count()
}

fn decode(range: Range, row: PartRow) -> Result<Part, Error> {
    let length = row.plain_length as usize;
    let plain = decode_part(row.encoding, &row.body, length, row.part_digest).map_err(|error| {
        corrupt(
            range,
            format_args!("entry {} part {}: {error}", row.entry_seq, row.part),
        )
    })?;
    Ok(Part {
        head: PartHead {
            entry_seq: row.entry_seq,
            part: row.part,
            last: row.last,
            checkpoint: row.checkpoint,
            generation: row.generation,
            plain_length: row.plain_length,
        },
        plain,
    })
}

/// What comes after a part.
fn position_after((entry_seq, part): (u64, u32), last: bool) -> (u64, u32) {
    match last {
        true => (entry_seq.saturating_add(1), 0),
        false => (entry_seq, part.saturating_add(1)),
    }
}

/// The position that a part follows. No entry has a part of the highest number.
fn position_before((entry_seq, part): (u64, u32)) -> Option<(u64, u32)> {
    match (part.checked_sub(1), entry_seq.checked_sub(1)) {
        (Some(before), _) => Some((entry_seq, before)),
        (None, Some(before)) if before > 0 => Some((before, MAX_PARTS)),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests;
