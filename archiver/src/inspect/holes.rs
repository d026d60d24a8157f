//! Which entries are neither in a segment of the manifest nor in the hot tail (archived-is-complete).

use wakelog_archive::session_prefix;
use wakelog_model::SessionId;

use super::Inspection;
use super::report::{Finding, InspectReport, What};
use crate::Error;

/// Sessions that are looked at a time, and ranges that are named of each.
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
                let session = tail.session;
                let missing = self
                    .store
                    .missing_entries(session, tail.last_entry_seq, HOLES)
                    .await?;
                if missing.is_empty() || self.is_erased(session).await? {
                    continue;
                }
                for (first, last) in missing {
                    report.add(Finding {
                        key: session_prefix(session),
                        session: Some(session),
                        what: What::Hole,
                        detail: format!(
                            "entries {first} to {last} are neither in a segment nor in the hot tail"
                        ),
                    });
                }
            }
            if self.session.is_some() {
                return Ok(());
            }
        }
    }

    /// Erased meanwhile, perhaps: then nothing of it is to be there.
    pub(super) async fn is_erased(&self, session: SessionId) -> Result<bool, Error> {
        let tails = self.store.hot_tails(&[session]).await?;
        Ok(tails.iter().any(|tail| tail.erased))
    }
}
