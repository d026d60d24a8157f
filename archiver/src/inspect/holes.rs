//! Which entries are neither in a segment of the manifest nor in the hot tail (archived-is-complete).

use wakelog_archive::session_prefix;
use wakelog_model::SessionId;

use super::Inspection;
use super::report::{Finding, InspectReport, What};
use crate::Error;

/// Sessions, and ranges of one, that are looked at a time.
const SESSIONS: u32 = 500;
const HOLES: usize = 100;

impl Inspection<'_> {
    pub(super) async fn find_holes(&self, report: &mut InspectReport) -> Result<(), Error> {
        let mut after = None;
        loop {
            let sessions = match self.session {
                Some(session) => vec![session],
                None => self.store.sessions_page(after, SESSIONS).await?,
            };
            let Some(last) = sessions.last() else {
                return Ok(());
            };
            after = Some(*last);
            for tail in self.store.hot_tails(&sessions).await? {
                if tail.erased {
                    continue;
                }
                self.find_holes_of(tail.session, tail.last_entry_seq, report)
                    .await?;
            }
            if self.session.is_some() {
                return Ok(());
            }
        }
    }

    async fn find_holes_of(
        &self,
        session: SessionId,
        last: u64,
        report: &mut InspectReport,
    ) -> Result<(), Error> {
        let mut from = 1;
        loop {
            let missing = self.store.missing_entries(session, from, last, HOLES).await?;
            let Some((_, end)) = missing.last().copied() else {
                return Ok(());
            };
            if self.is_erased(session).await? {
                return Ok(());
            }
            for (first, last) in missing {
                report.add(Finding {
                    key: session_prefix(session),
                    session: Some(session),
                    what: What::Hole,
                    detail: format!("entries {first} to {last} are neither in a segment nor in the hot tail"),
                });
            }
            from = end + 1;
        }
    }

    /// Erased meanwhile, perhaps: then nothing of it is to be there.
    pub(super) async fn is_erased(&self, session: SessionId) -> Result<bool, Error> {
        let tails = self.store.hot_tails(&[session]).await?;
        Ok(tails.iter().any(|tail| tail.erased))
    }
}
