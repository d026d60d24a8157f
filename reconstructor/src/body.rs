//! Reading the parts of entries, in pages by key.
//!
//! No connection and no snapshot is held between pages, so a slow receiver holds up nobody but itself. Pages are fetched
//! and decoded ahead of what is handed out, a few at most and in order. What is handed out is checked part by part: order
//! and completeness by [`Sequence`], length and digest by the decoder. Whatever does not fit is an error.

use std::vec;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wakelog_model::limits::MAX_PARTS;
use wakelog_model::{SessionId, decode_part};
use wakelog_store::{PartRow, Store};

use crate::sequence::{PartHead, Rule, Sequence};
use crate::{Error, failpoint};

/// Where pages come from.
pub(crate) trait PageSource: Clone + Send + Sync + 'static {
    /// The parts after `after`, up to entry `last`, in order; none only if there are none.
    fn page(
        &self,
        session: SessionId,
        after: Option<(u64, u32)>,
        last: u64,
        max_bytes: usize,
    ) -> impl Future<Output = Result<Vec<PartRow>, Error>> + Send;
}

impl PageSource for Store {
    async fn page(
        &self,
        session: SessionId,
        after: Option<(u64, u32)>,
        last: u64,
        max_bytes: usize,
    ) -> Result<Vec<PartRow>, Error> {
        Ok(self.parts_page(session, after, last, max_bytes).await?)
    }
}

/// The entries `first ..= last` of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) session: SessionId,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// A checked part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) head: PartHead,
    pub(crate) plain: Bytes,
}

/// Pages that are fetched and wait for the page before them to be handed out. One more is under way.
const PAGES_AHEAD: usize = 1;

/// A page that is being decoded.
type Decoding = JoinHandle<Result<Vec<Part>, Error>>;

/// Reads the parts of a range.
pub(crate) struct PartReader {
    range: Range,
    sequence: Sequence,
    page: vec::IntoIter<Part>,
    pages: mpsc::Receiver<Result<Decoding, Error>>,
    started: bool,
}

impl PartReader {
    /// Starts at the first part of the range. An empty range asks for nothing.
    pub(crate) fn new<S: PageSource>(source: S, range: Range, rule: Rule, page_bytes: usize) -> Self {
        let (sender, pages) = mpsc::channel(PAGES_AHEAD);
        if range.first <= range.last {
            // Never dropped while it holds a connection: it is a task of its own, and ends at its next page once nobody
            // takes pages any more.
            tokio::spawn(read_pages(source, range, page_bytes, sender));
        }
        Self {
            range,
            sequence: Sequence::new(rule, range.first, range.last),
            page: Vec::new().into_iter(),
            pages,
            started: false,
        }
    }

    /// The next part; `None` once the last part of the range has been handed out.
    pub(crate) async fn next(&mut self) -> Result<Option<Part>, Error> {
        if self.sequence.is_complete() && self.page.len() == 0 {
            return Ok(None);
        }
        if self.page.len() == 0 {
            self.turn_page().await?;
        }
        let range = self.range;
        let Some(part) = self.page.next() else {
            return match self.sequence.finish() {
                Ok(()) => Ok(None),
                Err(disorder) => Err(corrupt(range, disorder)),
            };
        };
        self.sequence
            .accept(&part.head)
            .map_err(|disorder| corrupt(range, disorder))?;
        Ok(Some(part))
    }

    /// No page is left when a page before was the last one: the check of the order says whether that is right.
    async fn turn_page(&mut self) -> Result<(), Error> {
        let Some(decoding) = self.pages.recv().await else {
            return Ok(());
        };
        let parts = decoding?.await.map_err(|_| Error::TaskDied)??;
        if self.started {
            failpoint::reach(failpoint::BETWEEN_PAGES)?;
        }
        self.started = true;
        self.page = parts.into_iter();
        Ok(())
    }
}

/// Fetches page after page. Each is decoded while the next one is fetched and the one before is handed out.
async fn read_pages<S: PageSource>(
    source: S,
    range: Range,
    page_bytes: usize,
    pages: mpsc::Sender<Result<Decoding, Error>>,
) {
    let mut after = first_position(range.first);
    loop {
        let rows = match source.page(range.session, after, range.last, page_bytes).await {
            Ok(rows) => rows,
            Err(error) => {
                // Nobody is there to be told: that is an answer too.
                pages.send(Err(error)).await.ok();
                return;
            }
        };
        let end = rows.last().map(|row| (row.entry_seq, row.part, row.last));
        let decoding =
            tokio::task::spawn_blocking(move || rows.into_iter().map(|row| decode(range, row)).collect());
        if pages.send(Ok(decoding)).await.is_err() {
            return;
        }
        match end {
            Some((entry_seq, part, last)) if entry_seq < range.last || !last => {
                after = Some((entry_seq, part))
            }
            _ => return,
        }
    }
}

fn decode(range: Range, row: PartRow) -> Result<Part, Error> {
    let plain = decode_part(
        row.encoding,
        &row.body,
        row.plain_length as usize,
        row.part_digest,
    )
    .map_err(|error| {
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

fn corrupt(range: Range, what: impl std::fmt::Display) -> Error {
    let Range { session, first, last } = range;
    Error::Corrupt(format!("session {session}, entries {first} to {last}: {what}"))
}

/// The position before the first part of `first`. No entry has a part of that number.
fn first_position(first: u64) -> Option<(u64, u32)> {
    first
        .checked_sub(1)
        .filter(|before| *before > 0)
        .map(|before| (before, MAX_PARTS))
}

#[cfg(test)]
mod tests;
