//! Reading the parts of entries, in pages by key.
//!
//! No connection and no snapshot is held between pages, so a slow receiver holds up nobody but itself. Pages are fetched
//! and decoded ahead of what is handed out, a few at most and in order. What is handed out is checked part by part: order
//! and completeness by [`Sequence`], length and digest by the decoder. Whatever does not fit is an error.
//!
//! | module | decision |
//! |---|---|
//! | `source` | the hot tail and the archive, as this reads them |
//! | `pages` | what is fetched when, and from where |
//! | `splice` | which segments fill a hole; pure |

mod pages;
mod source;
mod splice;

use std::vec;

use bytes::Bytes;
use tokio::sync::mpsc;
use wakelog_model::SessionId;

use crate::sequence::{PartHead, Rule, Sequence};
use crate::{Error, failpoint};
use pages::{PAGES_AHEAD, Page, read_pages};
#[cfg(test)]
pub(crate) use source::OpenSegment;
pub(crate) use source::{PartSource, Stored};

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
pub(crate) struct PartReader {
    range: Range,
    sequence: Sequence,
    page: vec::IntoIter<Part>,
    pages: mpsc::Receiver<Result<Page, Error>>,
    started: bool,
}

impl PartReader {
    /// Starts at the first part of the range. An empty range asks for nothing.
    pub(crate) fn new<S: PartSource>(source: S, range: Range, rule: Rule, page_bytes: usize) -> Self {
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
        let Some(page) = self.pages.recv().await else {
            return Ok(());
        };
        let parts = match page? {
            Page::Decoding(decoding) => decoding.await.map_err(|_| Error::TaskDied)??,
            Page::Parts(parts) => parts,
        };
        if self.started {
            failpoint::reach(failpoint::BETWEEN_PAGES)?;
        }
        self.started = true;
        self.page = parts.into_iter();
        Ok(())
    }
}

fn corrupt(range: Range, what: impl std::fmt::Display) -> Error {
    let Range { session, first, last } = range;
    Error::Corrupt(format!("session {session}, entries {first} to {last}: {what}"))
}

#[cfg(test)]
mod tests;
