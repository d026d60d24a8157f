//! Whether everything that was archived is there (archived-is-complete), and what the segments are now.

use tokio_util::sync::CancellationToken;
use wakelog_model::SessionId;
use wakelog_store::{HotTail, Rebuild};

use super::load::{ArchivedEnds, tell};
use super::report::{Missing, ReplayPhase, ReplayReport};
use super::{Hear, Replay};
use crate::Error;

/// Sessions that are looked at a time.
const SESSIONS: u32 = 200;

/// Ranges of missing entries that are named of one session.
const HOLES: usize = 100;

impl Replay {
    pub(super) async fn check(
        &self,
        rebuild: &Rebuild,
        archived_ends: ArchivedEnds,
        report: &mut ReplayReport,
        shutdown: &CancellationToken,
        hear: &Hear,
    ) -> Result<(), Error> {
        if self.objects.is_none() {
            return Ok(());
        }
        self.store.erase_below_erased().await?;
        self.check_ends(archived_ends, report, shutdown).await?;
        let starts = rebuild.starts.iter();
        let partitions: Vec<i32> = starts
            .filter(|(_, start_offset)| *start_offset > 0)
            .map(|(partition, _)| *partition)
            .collect();
        let (mut after, mut done) = (None, 0);
        loop {
            let page = self
                .store
                .sessions_of_partitions(&partitions, after, SESSIONS)
                .await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(*last);
            self.store.settle_segments(&page).await?;
            for tail in self.store.hot_tails(&page).await? {
                if shutdown.is_cancelled() {
                    return Err(Error::Interrupted);
                }
                if !tail.erased {
                    self.find_holes(&tail, report).await?;
                }
                done += 1;
            }
            tell(hear, ReplayPhase::Checking, done, None);
        }
    }

    /// What was archived when it began must be in the store by now.
    async fn check_ends(
        &self,
        archived_ends: ArchivedEnds,
        report: &mut ReplayReport,
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        let ends: Vec<(SessionId, u64)> = archived_ends.into_iter().collect();
        for page in ends.chunks(SESSIONS as usize) {
            if shutdown.is_cancelled() {
                return Err(Error::Interrupted);
            }
            let sessions: Vec<SessionId> = page.iter().map(|(session, _)| *session).collect();
            let tails = self.store.hot_tails(&sessions).await?;
            for (session, last) in page {
                match tails.iter().find(|tail| tail.session == *session) {
                    None => report.add(Missing::Unknown {
                        session: *session,
                        last: *last,
                    }),
                    Some(tail) if !tail.erased && tail.last_entry_seq < *last => {
                        report.add(Missing::Beyond {
                            partition: tail.partition,
                            session: *session,
                            first: tail.last_entry_seq + 1,
                            last: *last,
                        });
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    async fn find_holes(&self, tail: &HotTail, report: &mut ReplayReport) -> Result<(), Error> {
        let missing = self
            .store
            .missing_entries(tail.session, tail.last_entry_seq, HOLES)
            .await?;
        for (first, last) in missing {
            report.add(Missing::Entries {
                partition: tail.partition,
                session: tail.session,
                first,
                last,
            });
        }
        Ok(())
    }
}
