//! Every session's state, parts and segments into the store.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use prost::Message as _;
use tokio_util::sync::CancellationToken;
use wakelog_archive::{ERASED_FORMAT, ERASED_PREFIX, ObjectName, ObjectStore, SegmentKey, describe_stored};
use wakelog_model::SessionId;
use wakelog_proto::v1::ErasedSession;
use wakelog_store::{ArchivedObject, Rebuild};
use wakelog_stream::Watermarks;

use super::listing::{Listed, Sessions};
use super::report::{Missing, ReplayPhase, ReplayProgress, ReplayReport};
use super::state::{self, damage};
use super::{Hear, Replay, unfinished};
use crate::Error;

/// Sessions that are restored at a time, and segments of each that are looked at.
const SESSIONS_AT_A_TIME: usize = 4;
const SEGMENTS_AT_A_TIME: usize = 8;

/// Rows of the manifest that are stored at a time.
const SEGMENT_ROWS: usize = 1_000;

/// Bytes of a mark of an erased session, at most.
const MARK_LIMIT: u64 = 64 * 1024;

/// The last archived entry of each session, as of the beginning.
pub(super) type ArchivedEnds = BTreeMap<SessionId, u64>;

/// Where sessions are restored.
struct Place<'a> {
    incarnation: u32,
    /// The partitions that do not start at 0.
    partitions: &'a BTreeSet<i32>,
    watermarks: &'a BTreeMap<i32, Watermarks>,
}

/// What became of one session.
#[derive(Default)]
struct Loaded {
    restored: bool,
    segments: u64,
    missing: Vec<Missing>,
}

impl Replay {
    /// Lists the last archived entry of each session; nothing without an archive.
    pub(super) async fn archived_ends(
        &self,
        shutdown: &CancellationToken,
        hear: &Hear,
    ) -> Result<ArchivedEnds, Error> {
        let mut ends = ArchivedEnds::new();
        let Some(objects) = &self.objects else {
            return Ok(ends);
        };
        let mut sessions = Sessions::new(objects);
        while let Some(listed) = sessions.next().await? {
            if shutdown.is_cancelled() {
                return Err(Error::Interrupted);
            }
            if let Some(last) = listed.last_entry() {
                ends.insert(listed.session, last);
            }
            tell(hear, ReplayPhase::Listing, ends.len() as u64, None);
        }
        Ok(ends)
    }

    /// Restores every session of the partitions that do not start at 0. Those that are there already are passed over.
    pub(super) async fn load(
        &self,
        rebuild: &Rebuild,
        watermarks: &BTreeMap<i32, Watermarks>,
        report: &mut ReplayReport,
        shutdown: &CancellationToken,
        hear: &Hear,
    ) -> Result<(), Error> {
        let Some(objects) = &self.objects else {
            return Ok(());
        };
        let partitions: BTreeSet<i32> = rebuild
            .starts
            .iter()
            .filter(|(_, start_offset)| *start_offset > 0)
            .map(|(partition, _)| *partition)
            .collect();
        self.load_erased(objects, &partitions, report, shutdown).await?;
        let place = Place {
            incarnation: rebuild.incarnation,
            partitions: &partitions,
            watermarks,
        };
        let sessions = stream::try_unfold(Sessions::new(objects), |mut sessions| async move {
            let listed = sessions.next().await?;
            Ok::<_, Error>(listed.map(|listed| (listed, sessions)))
        });
        let loads = sessions
            .map(|listed| async { self.load_session(objects, listed?, &place).await })
            .buffer_unordered(SESSIONS_AT_A_TIME);
        tokio::pin!(loads);
        let mut done = 0;
        while let Some(loaded) = loads.try_next().await? {
            if shutdown.is_cancelled() {
                return Err(Error::Interrupted);
            }
            report.restored_sessions += u64::from(loaded.restored);
            report.restored_segments += loaded.segments;
            for missing in loaded.missing {
                report.add(missing);
            }
            done += 1;
            tell(hear, ReplayPhase::Restoring, done, None);
        }
        Ok(())
    }

    async fn load_erased(
        &self,
        objects: &ObjectStore,
        partitions: &BTreeSet<i32>,
        report: &mut ReplayReport,
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        let listed = objects.list(ERASED_PREFIX, None);
        tokio::pin!(listed);
        while let Some(object) = listed.try_next().await? {
            if shutdown.is_cancelled() {
                return Err(Error::Interrupted);
            }
            let ObjectName::Erased(session) = ObjectName::parse(&object.key) else {
                continue;
            };
            let mark = objects.get_bytes(&object.key, MARK_LIMIT).await?;
            let mark = ErasedSession::decode(mark)
                .ok()
                .filter(|mark| mark.format == ERASED_FORMAT);
            let Some(mark) = mark else {
                report.add(Missing::State {
                    session,
                    key: object.key,
                    reason: "it does not say of which partition the erased session was".to_owned(),
                });
                continue;
            };
            // A topic that begins at its beginning says itself what was erased.
            if partitions.contains(&mark.partition) {
                self.store.restore_erased(session, mark.partition).await?;
                report.erased_sessions += 1;
            }
        }
        Ok(())
    }

    /// Looks again where something is missing: archivers may go on, drop a state for a newer one, or delete what was erased.
    async fn load_session(
        &self,
        objects: &ObjectStore,
        listed: Listed,
        place: &Place<'_>,
    ) -> Result<Loaded, Error> {
        let session = listed.session;
        let loaded = self.try_load(objects, listed, place).await?;
        // A segment that can't be used does not keep its session from being restored.
        if loaded.restored || loaded.missing.is_empty() {
            return Ok(loaded);
        }
        match Sessions::only(objects, session).next().await? {
            Some(listed) => self.try_load(objects, listed, place).await,
            None => Ok(Loaded::default()),
        }
    }

    async fn try_load(
        &self,
        objects: &ObjectStore,
        listed: Listed,
        place: &Place<'_>,
    ) -> Result<Loaded, Error> {
        let mut loaded = Loaded::default();
        let session = listed.session;
        let Some(key) = listed.newest_state() else {
            // The topic has all of it, or nobody: that is found in the end.
            return Ok(loaded);
        };
        let missing_state = |reason| Missing::State {
            session,
            key: ObjectName::State(key).to_string(),
            reason,
        };
        let is_there = self.store.stored_sessions(&[session]).await?.contains(&session);
        if is_there {
            return Ok(loaded);
        }
        let archived = match state::read(objects, &self.topic, key).await? {
            Ok(archived) => archived,
            Err(reason) => {
                loaded.missing.push(missing_state(reason));
                return Ok(loaded);
            }
        };
        let partition = archived.partition();
        let Some(marks) = place.watermarks.get(&partition) else {
            loaded
                .missing
                .push(missing_state(format!("the topic has no partition {partition}")));
            return Ok(loaded);
        };
        // Offsets of an earlier incarnation of the topic say nothing about this one.
        if key.incarnation == place.incarnation && archived.next_offset() > marks.high {
            return Err(Error::LogTooShort {
                partition,
                next_offset: archived.next_offset(),
                high: marks.high,
            });
        }
        if !place.partitions.contains(&partition) {
            return Ok(loaded);
        }
        self.store.clear_pieces(session).await?;
        let last = archived.restored.session.last_entry_seq;
        if archived.unfinished_parts > 0 {
            let parts = archived.unfinished_parts;
            let restored = unfinished::restore(&self.store, objects, key, last + 1, parts).await?;
            if let Err(reason) = restored {
                let key = ObjectName::Parts(key).to_string();
                loaded.missing.push(Missing::State { session, key, reason });
                return Ok(loaded);
            }
        }
        // What begins behind the state's last entry is in the topic, and will be archived from there.
        let segments = listed.segments.into_iter();
        let segments: Vec<_> = segments.filter(|(key, _)| key.min_entry_seq <= last).collect();
        self.load_segments(objects, session, segments, &mut loaded)
            .await?;
        self.store.restore_session(&archived.restored).await?;
        loaded.restored = true;
        Ok(loaded)
    }

    async fn load_segments(
        &self,
        objects: &ObjectStore,
        session: SessionId,
        segments: Vec<(SegmentKey, u64)>,
        loaded: &mut Loaded,
    ) -> Result<(), Error> {
        let described = stream::iter(segments)
            .map(|(key, bytes)| async move { (key, describe_stored(objects, key, bytes).await) })
            .buffered(SEGMENTS_AT_A_TIME)
            .chunks(SEGMENT_ROWS);
        tokio::pin!(described);
        while let Some(chunk) = described.next().await {
            let mut rows = Vec::new();
            for (key, described) in chunk {
                match described {
                    Ok(described) => rows.push(ArchivedObject {
                        key: key.to_string(),
                        min_entry_seq: key.min_entry_seq,
                        max_entry_seq: key.max_entry_seq,
                        entries: described.entries,
                        // It is a copy of no row.
                        part_rows: 0,
                        plain_bytes: described.plain_bytes,
                        object_bytes: described.object_bytes,
                        object_digest: described.object_digest,
                    }),
                    Err(error) => loaded.missing.push(Missing::Segment {
                        session,
                        key: key.to_string(),
                        reason: damage(error)?,
                    }),
                }
            }
            self.store.restore_segments(session, &rows).await?;
            loaded.segments += rows.len() as u64;
        }
        Ok(())
    }
}

pub(super) fn tell(hear: &Hear, phase: ReplayPhase, done: u64, total: Option<u64>) {
    hear(&ReplayProgress { phase, done, total });
}
