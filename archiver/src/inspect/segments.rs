//! Whether the segments of the manifest are there, and are what they should be.

use wakelog_archive::{Failure, SegmentKey, verify_stored};
use wakelog_store::SegmentRow;

use super::Inspection;
use super::report::{Finding, InspectProgress, InspectReport, What};
use crate::Error;

/// Rows of the manifest that are read at a time.
const ROWS: u32 = 1_000;

impl Inspection<'_> {
    /// Reads every segment that the manifest has.
    pub(super) async fn check_segments(
        &self,
        report: &mut InspectReport,
        progress: &mut impl FnMut(InspectProgress),
    ) -> Result<(), Error> {
        let mut last: Option<SegmentRow> = None;
        loop {
            let after = last.as_ref().map(|row| row.key.as_str());
            let page = match self.session {
                Some(session) => self.store.segments_page(session, after, ROWS).await?,
                None => {
                    let after = last.as_ref().map(|row| (row.session, row.key.as_str()));
                    self.store.all_segments_page(after, ROWS).await?
                }
            };
            for row in &page {
                if let Some((what, detail)) = self.fault(row).await?
                    && self.is_still_recorded(row).await?
                {
                    report.add(Finding {
                        key: row.key.clone(),
                        session: Some(row.session),
                        what,
                        detail,
                    });
                }
                report.segments += 1;
                report.object_bytes += row.object_bytes;
                progress(InspectProgress {
                    segments: report.segments,
                    objects: report.objects,
                });
            }
            match page.into_iter().next_back() {
                Some(row) => last = Some(row),
                None => return Ok(()),
            }
        }
    }

    /// What is wrong with the segment of a row. An object store that can't be asked says nothing about its objects, and is an
    /// error.
    async fn fault(&self, row: &SegmentRow) -> Result<Option<(What, String)>, Error> {
        use wakelog_archive::Error as Archive;
        let damaged = |detail: String| Ok(Some((What::Damaged, detail)));
        let Ok(key) = row.key.parse::<SegmentKey>() else {
            return damaged("the manifest's key is no segment's name".to_owned());
        };
        let is_of_row = key.session == row.session
            && (key.min_entry_seq, key.max_entry_seq) == (row.min_entry_seq, row.max_entry_seq)
            && key.names(&row.object_digest);
        if !is_of_row {
            return damaged("the manifest says something else than the name".to_owned());
        }
        let verified = match verify_stored(self.objects, key, row.object_bytes).await {
            Ok(verified) => verified,
            Err(error) => {
                return match (&error, error.failure()) {
                    (_, Some(Failure::NotFound)) => Ok(Some((What::Missing, "it is not there".to_owned()))),
                    (_, Some(Failure::Corrupt | Failure::Truncated))
                    | (
                        Archive::SegmentDamaged { .. }
                        | Archive::UnknownFormat { .. }
                        | Archive::NotInSegment { .. }
                        | Archive::TooLarge { .. },
                        _,
                    ) => damaged(crate::chain(&error)),
                    _ => Err(error.into()),
                };
            }
        };
        let is_as_recorded = verified.object_digest == row.object_digest
            && (verified.entries, verified.plain_bytes) == (row.entries, row.plain_bytes);
        if !is_as_recorded {
            return damaged(format!(
                "it holds {} entries with {} bytes and has the digest {}, the manifest says something else",
                verified.entries,
                verified.plain_bytes,
                hex_of(&verified.object_digest)
            ));
        }
        Ok(None)
    }

    /// The rows of an erased session stay until its objects are gone: those are not missing.
    async fn is_still_recorded(&self, row: &SegmentRow) -> Result<bool, Error> {
        if self.is_erased(row.session).await? {
            return Ok(false);
        }
        Ok(self.store.segment(row.session, &row.key).await?.is_some())
    }
}

fn hex_of(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
