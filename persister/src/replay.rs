//! Builds an empty store again: from the topic, or, where retention has eaten the topic's head, from the states and segments of
//! the archive and the rest of the topic.
//!
//! | module | decision |
//! |---|---|
//! | [`report`] | what it says |
//! | `coverage` | how far the archive's states reach, and whether they are states of this log |
//! | `start` | where a partition starts, or what is missing; pure |
//! | `listing` | the archive's objects, a session at a time |
//! | `choice` | which state of a session is restored |
//! | `state` | from a state object to rows, or why not; pure |
//! | `unfinished` | the parts of an entry that was not complete |
//! | `load` | every session's state, parts and segments into the store |
//! | `batches` | records of a range, decoded ahead of what is folded |
//! | `skip` | which records a state holds already |
//! | `fold` | the rest of a partition, as the persister folds it |
//! | `check` | whether everything that was archived is there |
//!
//! The store is empty when it begins and belongs to no service before it ends. What is interrupted goes on where it stopped:
//! a session has a row once it is restored, a partition's progress moves with what is folded. What neither the topic nor the
//! archive has is reported, and never passed over.

mod batches;
mod check;
mod choice;
mod coverage;
mod fold;
mod listing;
mod load;
pub mod report;
mod skip;
mod start;
mod state;
mod unfinished;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wakelog_archive::ObjectStore;
use wakelog_store::{Rebuild, RebuildLock, RebuildPlan, RebuildStart, RebuildTarget, Store};
use wakelog_stream::{LogReader, Watermarks};

use crate::Error;
pub use coverage::{ArchiveMisfit, archive_fits};
use fold::{FoldTask, Folded};
pub use report::{Missing, ReplayPhase, ReplayProgress, ReplayReport, ReplayedPartition};
use start::{Start, start};

/// Partitions that are folded at a time.
const PARTITIONS_AT_A_TIME: usize = 4;

/// What is built, from what.
#[derive(Clone)]
pub struct Replay {
    /// The store: unguarded, empty or left by a replay that was interrupted.
    pub store: Store,
    /// The archive; `None`: the topic must have everything.
    pub objects: Option<ObjectStore>,
    /// The log.
    pub reader: LogReader,
    /// The topic.
    pub topic: String,
    /// Whether to go on however many records this build can't read; else that is taken for a build that is too old.
    pub accept_undecodable: bool,
}

/// Hears how far it is.
pub type Hear = Arc<dyn Fn(&ReplayProgress) + Send + Sync>;

/// Builds the store up to the log's end as it is now, on this build's schema.
///
/// What is missing is in the report. [`wakelog_store::Error::NotEmpty`] and its like if the store can't be built, or is in use:
/// nothing is changed then. [`Error::Interrupted`] if `shutdown` ended it: the same call goes on. After any other error too, once
/// its cause is gone.
pub async fn replay(
    replay: &Replay,
    shutdown: &CancellationToken,
    hear: &Hear,
) -> Result<ReplayReport, Error> {
    // Held to the end.
    let mut lock = replay.store.lock_rebuild().await?;
    let unfinished = match lock.check_target().await? {
        RebuildTarget::Unfinished => replay.unfinished(&mut lock).await?,
        RebuildTarget::Empty => None,
    };
    let mut report = ReplayReport::default();
    // Before the log's end is looked at: what is archived by now is in the log by then.
    let archived_ends = replay.archived_ends(shutdown, hear).await?;
    let rebuild = match unfinished {
        Some(rebuild) => rebuild,
        None => match replay.begin(&mut lock, &mut report).await? {
            Some(rebuild) => rebuild,
            None => return Ok(report),
        },
    };
    let starts = rebuild.starts_above_zero();
    if !rebuild.states_loaded {
        // What the topic has as a whole needs no state: its sessions are there before one that is damaged is missed.
        let mut whole = replay.watermarks().await?;
        whole.retain(|partition, _| !starts.contains_key(partition));
        replay.fold(&rebuild, &whole, &mut report, shutdown, hear).await?;
        replay.load(&rebuild, &mut report, shutdown, hear).await?;
        if report.lacks_states || report.missing_count > 0 && report.partitions.len() < whole.len() {
            return Ok(report);
        }
        replay.store.mark_states_loaded(rebuild.epoch).await?;
    }
    // After the states: what they hold is in the log by now.
    let watermarks = replay.watermarks().await?;
    replay
        .fold(&rebuild, &watermarks, &mut report, shutdown, hear)
        .await?;
    if report.partitions.len() < watermarks.len() {
        return Ok(report);
    }
    replay
        .check(&rebuild, archived_ends, &mut report, shutdown, hear)
        .await?;
    if !report.is_unsafe {
        replay.store.finish_rebuild(rebuild.epoch).await?;
        report.finished = true;
    }
    Ok(report)
}

impl Replay {
    async fn watermarks(&self) -> Result<BTreeMap<i32, Watermarks>, Error> {
        let partitions = self.reader.partition_count().await?;
        let mut watermarks = BTreeMap::new();
        for partition in 0..partitions {
            watermarks.insert(partition, self.reader.watermarks(partition).await?);
        }
        Ok(watermarks)
    }

    /// The rebuild that was interrupted; `None`: there is none.
    async fn unfinished(&self, lock: &mut RebuildLock) -> Result<Option<Rebuild>, Error> {
        self.store.migrate().await?;
        let Some(rebuild) = lock.go_on().await? else {
            return Ok(None);
        };
        match rebuild.topic == self.topic && rebuild.from_archive == self.objects.is_some() {
            true => Ok(Some(rebuild)),
            false => Err(Error::OtherReplay {
                topic: rebuild.topic,
                from_archive: rebuild.from_archive,
            }),
        }
    }

    /// Begins a new one; `None`: nothing was begun, because something is missing. Then there are no tables either: no service
    /// starts on that database.
    async fn begin(
        &self,
        lock: &mut RebuildLock,
        report: &mut ReplayReport,
    ) -> Result<Option<Rebuild>, Error> {
        let covered = match &self.objects {
            Some(objects) => Some(coverage::newest(objects).await?),
            None => None,
        };
        if let Some(covered) = &covered
            && let Some(misfit) = covered.misfit(&self.reader, &self.topic).await?
        {
            return Err(Error::OtherLog(misfit));
        }
        let incarnation = covered.as_ref().map_or(1, |covered| covered.incarnation);
        let covered_offset = |partition| covered.as_ref().map_or(0, |covered| covered.offset(partition));
        // After the coverage: what is covered is in the log by then.
        let watermarks = self.watermarks().await?;
        let mut starts = Vec::new();
        let mut uncovered = BTreeMap::new();
        for (partition, marks) in &watermarks {
            if marks.low > 0
                && let Some(covered) = &covered
            {
                covered.check_readable(*partition)?;
            }
            match start(*partition, marks, covered_offset(*partition))? {
                Start::At(start_offset) => starts.push(RebuildStart {
                    partition: *partition,
                    start_offset,
                    last_record_crc: self.crc_before(*partition, start_offset, marks).await?,
                }),
                Start::Missing { from, to } => {
                    uncovered.insert(*partition, (from, to));
                    report.add(Missing::Records {
                        partition: *partition,
                        from,
                        to,
                        from_archive: self.objects.is_some(),
                    });
                }
            }
        }
        if !uncovered.is_empty() {
            self.name_sessions(&uncovered, incarnation, report).await?;
            return Ok(None);
        }
        let plan = RebuildPlan {
            topic: self.topic.clone(),
            from_archive: self.objects.is_some(),
            incarnation,
            starts,
        };
        self.store.migrate().await?;
        Ok(Some(lock.begin(&plan).await?))
    }

    async fn crc_before(
        &self,
        partition: i32,
        offset: i64,
        marks: &Watermarks,
    ) -> Result<Option<u32>, Error> {
        if offset <= marks.low {
            return Ok(None);
        }
        let record = self.reader.record_at(partition, offset - 1).await?;
        Ok(record.map(|record| record.crc()))
    }

    /// Folds what the states do not hold, some partitions at a time.
    async fn fold(
        &self,
        rebuild: &Rebuild,
        watermarks: &BTreeMap<i32, Watermarks>,
        report: &mut ReplayReport,
        shutdown: &CancellationToken,
        hear: &Hear,
    ) -> Result<(), Error> {
        // The first error ends the others in order.
        let stop = shutdown.child_token();
        let mut tasks = JoinSet::new();
        let mut waiting = watermarks.iter();
        let mut first_error = None;
        loop {
            while tasks.len() < PARTITIONS_AT_A_TIME
                && let Some((partition, marks)) = waiting.next()
            {
                let task = FoldTask {
                    replay: self.clone(),
                    partition: *partition,
                    to: marks.high,
                    incarnation: rebuild.incarnation,
                    epoch: rebuild.epoch,
                    stop: stop.clone(),
                    hear: hear.clone(),
                };
                tasks.spawn(task.run());
            }
            let Some(ended) = tasks.join_next().await else {
                break;
            };
            let ended = ended.unwrap_or_else(|error| {
                Err(Error::Bug {
                    detail: format!("folding a partition ended: {error}"),
                })
            });
            match ended {
                Ok(Folded::Done(partition)) => report.folded(partition),
                Ok(Folded::Missing(missing)) => report.add(missing),
                Err(error) => {
                    stop.cancel();
                    let is_cause = first_error.is_none() || matches!(first_error, Some(Error::Interrupted));
                    if is_cause {
                        first_error = Some(error);
                    }
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Names the sessions that may have lost records: those whose newest state is older than what is left of the topic.
    async fn name_sessions(
        &self,
        uncovered: &BTreeMap<i32, (i64, i64)>,
        incarnation: u32,
        report: &mut ReplayReport,
    ) -> Result<(), Error> {
        let Some(objects) = &self.objects else {
            return Ok(());
        };
        let mut sessions = listing::Sessions::new(objects);
        while let Some(listed) = sessions.next().await? {
            let Some(key) = listed.newest_state() else {
                continue;
            };
            let Ok(archived) = state::read(objects, &self.topic, key).await? else {
                continue;
            };
            let Some((from, to)) = uncovered.get(&archived.partition()) else {
                continue;
            };
            // Offsets of an earlier incarnation of the topic say nothing about this one.
            let held = match key.incarnation == incarnation {
                true => archived.next_offset(),
                false => 0,
            };
            let from = held.max(*from);
            if from < *to {
                report.add(Missing::RecordsOf {
                    partition: archived.partition(),
                    session: key.session,
                    from,
                    to: *to,
                });
            }
        }
        Ok(())
    }
}
