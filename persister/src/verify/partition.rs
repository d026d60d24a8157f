//! Verifies one partition, also while the persister goes on.
//!
//! What is read of a session while the store goes from one offset to another is what the log says of it at the first
//! one, unless a record in between is of that session. So after each round the records in between are folded, what was
//! found of their sessions is taken back, and only those are compared again.

use std::collections::BTreeSet;

use wakelog_fold::SessionState;
use wakelog_model::SessionId;
use wakelog_store::{Progress, Store};
use wakelog_stream::{LogReader, Record};

use super::archived::Archived;
use super::compare::{compare_quarantine, compare_session};
use super::differences::Differences;
use super::refold::Refold;
use super::report::{DifferenceKind, PartitionReport, VerifyPhase, VerifyProgress};
use crate::Error;
use crate::decode::{Decoded, decode};

/// Comparisons of a partition that moves, at most.
const ROUNDS: usize = 10;

/// Records that are decoded at a time.
const DECODED_RECORDS: usize = 256;

/// Sessions that are read at a time.
const PAGE_SESSIONS: u32 = 500;

/// One partition to verify.
pub(crate) struct Task<'a> {
    pub(crate) archived: Archived<'a>,
    pub(crate) reader: &'a LogReader,
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) partitions: i32,
}

/// The progress row, for a partition that may never have been claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FoldedTo {
    next_offset: i64,
    last_record_crc: Option<u32>,
}

impl Task<'_> {
    pub(crate) async fn run(
        &self,
        progress: &mut impl FnMut(&VerifyProgress),
    ) -> Result<(PartitionReport, Differences), Error> {
        let mut refold = Refold::new(self.partition);
        let mut differences = Differences::new(self.partition);
        let mut folded_to = self.folded_to().await?;
        self.check_log(folded_to).await?;
        let mut last_crc = self.fold_to(&mut refold, folded_to, progress).await?;
        // The first round compares all of them.
        refold.take_touched();
        let (mut unsettled, mut archived_entries) = (None, 0);
        for _ in 0..ROUNDS {
            match &unsettled {
                None => archived_entries = self.compare_all(&refold, &mut differences, progress).await?,
                Some(sessions) => {
                    self.compare_some(&refold, sessions, &mut differences, progress)
                        .await?
                }
            }
            let quarantined = self.store().quarantine_counts(self.topic, self.partition).await?;
            let now = self.folded_to().await?;
            if now == folded_to {
                compare_quarantine(refold.quarantined(), &quarantined, &mut differences);
                unsettled = None;
                break;
            }
            folded_to = now;
            last_crc = self.fold_to(&mut refold, folded_to, progress).await?;
            let touched = refold.take_touched();
            differences.take_back(&touched);
            unsettled = Some(touched);
        }
        if last_crc != folded_to.last_record_crc {
            let (log, store) = (
                format!("{last_crc:?}"),
                format!("{:?}", folded_to.last_record_crc),
            );
            differences.add(None, DifferenceKind::LastRecord, log, store);
        }
        let report = PartitionReport {
            partition: self.partition,
            next_offset: refold.next_offset(),
            sessions: refold.opened_sessions().len() as u64,
            parts: refold.parts(),
            archived_entries,
            quarantined: refold.quarantined().values().sum(),
            difference_count: differences.count(),
            moving: unsettled.is_some(),
            unsettled_sessions: unsettled.map_or(0, |sessions| sessions.len() as u64),
        };
        Ok((report, differences))
    }

    fn store(&self) -> &Store {
        self.archived.store
    }

    async fn folded_to(&self) -> Result<FoldedTo, Error> {
        let progress = self.store().progress(self.topic, self.partition).await?;
        Ok(progress.map_or(
            FoldedTo {
                next_offset: 0,
                last_record_crc: None,
            },
            |Progress {
                 next_offset,
                 last_record_crc,
                 ..
             }| FoldedTo {
                next_offset,
                last_record_crc,
            },
        ))
    }

    async fn check_log(&self, folded_to: FoldedTo) -> Result<(), Error> {
        let watermarks = self.reader.watermarks(self.partition).await?;
        let partition = self.partition;
        if watermarks.low > 0 {
            return Err(Error::LogHeadEaten {
                partition,
                low: watermarks.low,
            });
        }
        if watermarks.high < folded_to.next_offset {
            let (next_offset, high) = (folded_to.next_offset, watermarks.high);
            return Err(Error::LogTooShort {
                partition,
                next_offset,
                high,
            });
        }
        Ok(())
    }

    /// Folds what the store has folded since the last time; the checksum of the last record.
    async fn fold_to(
        &self,
        refold: &mut Refold,
        folded_to: FoldedTo,
        progress: &mut impl FnMut(&VerifyProgress),
    ) -> Result<Option<u32>, Error> {
        let to = folded_to.next_offset;
        if refold.next_offset() >= to {
            // Nothing new, so the last record is still the one that the store knows.
            return Ok(folded_to.last_record_crc);
        }
        let mut range = self.reader.read_range(self.partition, refold.next_offset(), to);
        let mut last_crc = None;
        loop {
            let mut records = Vec::new();
            if range.recv_many(&mut records, DECODED_RECORDS).await == 0 {
                break;
            }
            let records = records.into_iter().collect::<Result<Vec<Record>, _>>()?;
            last_crc = records.last().map(Record::crc);
            for decoded in decode_all(records).await? {
                refold.take(&decoded);
            }
            self.tell(
                progress,
                VerifyPhase::Folding,
                refold.next_offset().unsigned_abs(),
                to.unsigned_abs(),
            );
        }
        if refold.next_offset() != to {
            let detail = format!(
                "the log was read up to {} and not up to {to}",
                refold.next_offset()
            );
            return Err(Error::Bug { detail });
        }
        Ok(last_crc)
    }

    /// Returns how many entries were archived.
    async fn compare_all(
        &self,
        refold: &Refold,
        differences: &mut Differences,
        progress: &mut impl FnMut(&VerifyProgress),
    ) -> Result<u64, Error> {
        let mut archived_entries = 0;
        let mut missing = refold.opened_sessions();
        let total = missing.len() as u64;
        let (mut after, mut done) = (None, 0);
        loop {
            let page = self
                .store()
                .session_digests(self.partition, after, PAGE_SESSIONS)
                .await?;
            let Some((last, _)) = page.last() else {
                break;
            };
            after = Some(*last);
            for (session, state) in &page {
                missing.remove(session);
                archived_entries +=
                    compare_session(&self.archived, refold, *session, Some(state), differences).await?;
                done += 1;
            }
            self.tell(progress, VerifyPhase::Comparing, done, total);
        }
        for session in missing {
            archived_entries += compare_session(&self.archived, refold, session, None, differences).await?;
        }
        Ok(archived_entries)
    }

    async fn compare_some(
        &self,
        refold: &Refold,
        sessions: &BTreeSet<SessionId>,
        differences: &mut Differences,
        progress: &mut impl FnMut(&VerifyProgress),
    ) -> Result<(), Error> {
        for (session, done) in sessions.iter().zip(1..) {
            let stored = self.store().session_state(*session).await?;
            let stored = stored.filter(|state| self.is_of_this_partition(state));
            compare_session(&self.archived, refold, *session, stored.as_deref(), differences).await?;
            self.tell(progress, VerifyPhase::Comparing, done, sessions.len() as u64);
        }
        Ok(())
    }

    /// A record on the wrong partition names a session that is another partition's to compare. A state that can't be
    /// read is compared, and differs.
    fn is_of_this_partition(&self, state: &[u8]) -> bool {
        let Ok(state) = SessionState::decode(state) else {
            return true;
        };
        state
            .opened()
            .is_none_or(|opened| opened.partition == self.partition)
    }

    fn tell(&self, progress: &mut impl FnMut(&VerifyProgress), phase: VerifyPhase, done: u64, total: u64) {
        let (partition, partitions) = (self.partition, self.partitions);
        progress(&VerifyProgress {
            partition,
            partitions,
            phase,
            done,
            total,
        });
    }
}

/// Opening bodies and hashing them is work for a core of its own.
async fn decode_all(records: Vec<Record>) -> Result<Vec<Decoded>, Error> {
    let decoding = tokio::task::spawn_blocking(move || records.iter().map(decode).collect());
    decoding.await.map_err(|error| Error::Bug {
        detail: format!("decoding records failed: {error}"),
    })
}
