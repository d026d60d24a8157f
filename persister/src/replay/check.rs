//! Whether everything that was archived is there (archived-is-complete), and what the segments are now.

use tokio_util::sync::CancellationToken;
use wakelog_model::SessionId;
use wakelog_store::{HotTail, Rebuild};

use super::load::{ArchivedEnds, tell};
use super::report::{LISTED, Missing, ReplayPhase, ReplayReport};
use super::{Hear, Replay};
use crate::Error;

/// Sessions that are looked at a time.
const SESSIONS: u32 = 200;

/// Ranges of missing entries of one session that are asked for at a time.
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
        self.forget_erased_segments(report).await?;
        let starts = rebuild.starts_above_zero();
        for (partition, start_offset) in &starts {
            self.find_unopened(*partition, *start_offset, report).await?;
        }
        let partitions: Vec<i32> = starts.into_keys().collect();
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
            self.store.settle_segments(rebuild.epoch, &page).await?;
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

    /// A sweep of a session that was erased meanwhile may have deleted a segment before it was looked at.
    async fn forget_erased_segments(&self, report: &mut ReplayReport) -> Result<(), Error> {
        let named = report.sessions_with_missing_segments();
        for page in named.chunks(SESSIONS as usize) {
            let tails = self.store.hot_tails(page).await?;
            let erased = tails.iter().filter(|tail| tail.erased);
            report.forget_segments_of(&erased.map(|tail| tail.session).collect());
        }
        Ok(())
    }

    /// Sessions of which the topic has records, and of which nobody has the beginning.
    async fn find_unopened(
        &self,
        partition: i32,
        start_offset: i64,
        report: &mut ReplayReport,
    ) -> Result<(), Error> {
        let (unknown, count) = self
            .store
            .unknown_sessions(&self.topic, partition, start_offset, LISTED)
            .await?;
        report.missing_count += count - unknown.len() as u64;
        for unknown in unknown {
            report.add(Missing::Unopened {
                partition,
                session: unknown.session,
                first: unknown.first_offset,
                last: unknown.last_offset,
            });
        }
        Ok(())
    }

    async fn find_holes(&self, tail: &HotTail, report: &mut ReplayReport) -> Result<(), Error> {
        let mut from = 1;
        loop {
            let missing = self
                .store
                .missing_entries(tail.session, from, tail.last_entry_seq, HOLES)
                .await?;
            let Some((_, end)) = missing.last().copied() else {
                return Ok(());
            };
            for (first, last) in missing {
                report.add(Missing::Entries {
                    partition: tail.partition,
                    session: tail.session,
                    first,
                    last,
                });
            }
            from = end + 1;
        }
    }
}
