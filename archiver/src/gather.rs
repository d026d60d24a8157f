//! Reading rows of the hot tail into one segment, in bounded memory.

use tokio::task::spawn_blocking;
use wakelog_archive::{EntryHead, SealedSegment, SegmentWriter, SpoolOptions};
use wakelog_model::limits::MAX_PARTS;
use wakelog_model::{SessionId, decode_part};
use wakelog_store::PartRow;

use crate::Error;
use crate::lifetimes::Lifetimes;
use crate::shared::Shared;
use crate::uncovered::EntryRange;

/// A segment and the rows that it was made of.
pub(crate) struct Gathered {
    pub(crate) segment: SealedSegment,
    pub(crate) part_rows: u64,
}

/// What a segment is made of so far, or that its rows are somewhere else by now.
struct Gathering {
    writer: SegmentWriter,
    session: SessionId,
    /// The entry and part that come next.
    due: (u64, u32),
    last: u64,
    part_rows: u64,
    full: bool,
    moved: bool,
}

impl Shared {
    /// Seals as much of the range as one segment takes, at least one entry. `None`: the hot tail does not hold it any more.
    pub(crate) async fn gather(
        &self,
        session: SessionId,
        range: EntryRange,
        lifetimes: &Lifetimes,
    ) -> Result<Option<Gathered>, Error> {
        let spool = SpoolOptions {
            folder: self.options.spool_folder.clone(),
            ..SpoolOptions::default()
        };
        let mut gathering = Gathering {
            writer: SegmentWriter::new(session, spool)?,
            session,
            due: (range.0, 0),
            last: range.1,
            part_rows: 0,
            full: false,
            moved: false,
        };
        let fetch = |after| {
            self.store
                .parts_page(session, Some(after), range.1, self.options.page_bytes)
        };
        let mut page = fetch((range.0.saturating_sub(1), MAX_PARTS)).await?;
        while !gathering.is_done() {
            let Some(end) = page.last() else {
                gathering.moved = true;
                break;
            };
            let (after, is_last) = ((end.entry_seq, end.part), end.last && end.entry_seq == range.1);
            let lifetimes = lifetimes.clone();
            // Decompressing and compressing take milliseconds a page: meanwhile the next one is on its way.
            let taking = spawn_blocking(move || gathering.take_page(&page, &lifetimes));
            let fetching = async {
                match is_last {
                    true => Ok(Vec::new()),
                    false => fetch(after).await,
                }
            };
            let (taken, fetched) = tokio::join!(taking, fetching);
            gathering = taken.map_err(|_| Error::TaskDied)??;
            if gathering.is_done() {
                break;
            }
            page = fetched?;
        }
        if gathering.moved {
            return Ok(None);
        }
        spawn_blocking(move || {
            let part_rows = gathering.part_rows;
            let segment = gathering.writer.finish()?;
            Ok(Some(Gathered { segment, part_rows }))
        })
        .await
        .map_err(|_| Error::TaskDied)?
    }
}

impl Gathering {
    fn is_done(&self) -> bool {
        self.full || self.moved || self.due.0 > self.last
    }

    fn take_page(mut self, page: &[PartRow], lifetimes: &Lifetimes) -> Result<Self, Error> {
        for row in page {
            if (row.entry_seq, row.part) != self.due {
                // Another archiver was faster, or an erasure: whole entries have gone.
                self.moved = true;
                return Ok(self);
            }
            if row.part == 0 && self.writer.is_full() {
                self.full = true;
                return Ok(self);
            }
            self.take_row(row, lifetimes)?;
        }
        Ok(self)
    }

    fn take_row(&mut self, row: &PartRow, lifetimes: &Lifetimes) -> Result<(), Error> {
        // A flipped bit in the hot tail is found here, before the only good copy would be the topic's.
        let plain = decode_part(
            row.encoding,
            &row.body,
            row.plain_length as usize,
            row.part_digest,
        )
        .map_err(|error| Error::Corrupt {
            session: self.session,
            what: format!("entry {} part {}: {error}", row.entry_seq, row.part),
        })?;
        if row.part == 0 {
            let lifetime_id = lifetimes.id(row.generation).ok_or_else(|| Error::Corrupt {
                session: self.session,
                what: format!(
                    "entry {} is of generation {}, which was never bound",
                    row.entry_seq, row.generation
                ),
            })?;
            self.writer.begin_entry(EntryHead {
                entry_seq: row.entry_seq,
                checkpoint: row.checkpoint,
                generation: row.generation,
                lifetime_id,
            })?;
        }
        self.writer.append_part(&plain)?;
        self.part_rows += 1;
        self.due = match row.last {
            true => (row.entry_seq + 1, 0),
            false => (row.entry_seq, row.part + 1),
        };
        Ok(())
    }
}
