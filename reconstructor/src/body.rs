//! Reading the parts of entries, in pages by key.
//!
//! No connection and no snapshot is held between pages, so a slow receiver holds up nobody but itself. At most one page
//! is read ahead. What is handed out is checked part by part: order and completeness by [`Sequence`], length and digest
//! by the decoder. Whatever does not fit is an error.

use std::vec;

use bytes::Bytes;
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

/// Reads the parts of a range.
pub(crate) struct PartReader<S> {
    source: S,
    range: Range,
    page_bytes: usize,
    sequence: Sequence,
    page: vec::IntoIter<PartRow>,
    /// The page after `page`, on its way. Never dropped while it holds a connection: it is a task of its own, and runs
    /// to its end.
    ahead: Option<JoinHandle<Result<Vec<PartRow>, Error>>>,
    started: bool,
}

impl<S: PageSource> PartReader<S> {
    /// Starts at the first part of the range.
    pub(crate) fn new(source: S, range: Range, rule: Rule, page_bytes: usize) -> Self {
        Self {
            source,
            range,
            page_bytes,
            sequence: Sequence::new(rule, range.first, range.last),
            page: Vec::new().into_iter(),
            ahead: None,
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
        let Some(row) = self.page.next() else {
            return match self.sequence.finish() {
                Ok(()) => Ok(None),
                Err(disorder) => Err(self.corrupt(disorder)),
            };
        };
        let head = PartHead {
            entry_seq: row.entry_seq,
            part: row.part,
            last: row.last,
            checkpoint: row.checkpoint,
            generation: row.generation,
            plain_length: row.plain_length,
        };
        self.sequence
            .accept(&head)
            .map_err(|disorder| self.corrupt(disorder))?;
        let plain = decode_part(
            row.encoding,
            &row.body,
            row.plain_length as usize,
            row.part_digest,
        )
        .map_err(|error| self.corrupt(format_args!("entry {} part {}: {error}", row.entry_seq, row.part)))?;
        Ok(Some(Part { head, plain }))
    }

    async fn turn_page(&mut self) -> Result<(), Error> {
        let rows = match self.ahead.take() {
            Some(ahead) => ahead.await.map_err(|_| Error::TaskDied)??,
            None => self.fetch(first_position(self.range.first)).await?,
        };
        if self.started {
            failpoint::reach(failpoint::BETWEEN_PAGES)?;
        }
        self.started = true;
        if let Some(end) = rows.last()
            && (end.entry_seq < self.range.last || !end.last)
        {
            self.ahead = Some(tokio::spawn(self.fetch(Some((end.entry_seq, end.part)))));
        }
        self.page = rows.into_iter();
        Ok(())
    }

    fn fetch(
        &self,
        after: Option<(u64, u32)>,
    ) -> impl Future<Output = Result<Vec<PartRow>, Error>> + Send + use<S> {
        let (source, range, page_bytes) = (self.source.clone(), self.range, self.page_bytes);
        async move { source.page(range.session, after, range.last, page_bytes).await }
    }

    fn corrupt(&self, what: impl std::fmt::Display) -> Error {
        let Range { session, first, last } = self.range;
        Error::Corrupt(format!("session {session}, entries {first} to {last}: {what}"))
    }
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
