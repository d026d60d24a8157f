//! Every session's state, parts and segments into the store.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use prost::Message as _;
use tokio_util::sync::CancellationToken;
use wakelog_archive::{
    ERASED_FORMAT, ERASED_PREFIX, MARK_LIMIT, ObjectName, ObjectStore, SegmentKey, SnapshotKey,
    describe_stored,
};
use wakelog_model::SessionId;
use wakelog_proto::v1::ErasedSession;
use wakelog_store::{ArchivedObject, Rebuild};

use super::choice::{Choice, Starts, choose};
use super::listing::{Listed, Sessions};
use super::report::{Missing, ReplayPhase, ReplayProgress, ReplayReport};
use super::state::{ArchivedState, damage};
use super::{Hear, Replay, unfinished};
use crate::Error;

/// Sessions that are restored at a time, and segments of each that are looked at.
const SESSIONS_AT_A_TIME: usize = 4;
const SEGMENTS_AT_A_TIME: usize = 8;

/// Rows of the manifest that are stored at a time.
const SEGMENT_ROWS: usize = 1_000;

/// The last archived entry of each session, as of the beginning.
pub(super) type ArchivedEnds = BTreeMap<SessionId, u64>;

/// Where sessions are restored.
struct Place<'a> {
    objects: &'a ObjectStore,
    epoch: i64,
    starts: Starts<'a>,
}

/// Which of two looks at the marks of erased sessions it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    BeforeStates,
    AfterStates,
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
        report: &mut ReplayReport,
        shutdown: &CancellationToken,
        hear: &Hear,
    ) -> Result<(), Error> {
        let Some(objects) = &self.objects else {
            return Ok(());
        };
        let offsets = rebuild.starts_above_zero();
        let place = Place {
            objects,
            epoch: rebuild.epoch,
            starts: Starts {
                incarnation: rebuild.incarnation,
                offsets: &offsets,
            },
        };
        self.load_erased(&place, Look::BeforeStates, report, shutdown)
            .await?;
        self.load_sessions(&place, report, shutdown, hear).await?;
        // What was erased meanwhile has lost its state: without its mark its records would be those of an unknown session.
        self.load_erased(&place, Look::AfterStates, report, shutdown)
            .await
    }

    async fn load_sessions(
        &self,
        place: &Place<'_>,
        report: &mut ReplayReport,
        shutdown: &CancellationToken,
        hear: &Hear,
    ) -> Result<(), Error> {
        let sessions = stream::try_unfold(Sessions::new(place.objects), |mut sessions| async move {
            let listed = sessions.next().await?;
            Ok::<_, Error>(listed.map(|listed| (listed, sessions)))
        });
        let loads = sessions
            .map(|listed| async { self.load_session(listed?, place).await })
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
        place: &Place<'_>,
        look: Look,
        report: &mut ReplayReport,
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        // A topic that begins at its beginning says itself what was erased.
        if place.starts.offsets.is_empty() {
            return Ok(());
        }
        let listed = place.objects.list(ERASED_PREFIX, None);
        tokio::pin!(listed);
        while let Some(object) = listed.try_next().await? {
            if shutdown.is_cancelled() {
                return Err(Error::Interrupted);
            }
            let ObjectName::Erased(session) = ObjectName::parse(&object.key) else {
                continue;
            };
            let mark = place.objects.get_bytes(&object.key, MARK_LIMIT).await?;
            let mark = ErasedSession::decode(mark)
                .ok()
                .filter(|mark| mark.format == ERASED_FORMAT);
            match mark {
                Some(mark) if place.starts.offsets.contains_key(&mark.partition) => {
                    self.store
                        .restore_erased(place.epoch, session, mark.partition)
                        .await?;
                    report.erased_sessions += u64::from(look == Look::AfterStates);
                }
                Some(_) => {}
                None if look == Look::AfterStates => report.add(Missing::State {
                    session,
                    key: object.key,
                    reason: "it does not say of which partition the erased session was".to_owned(),
                }),
                None => {}
            }
        }
        Ok(())
    }

    /// Looks again where something is missing: archivers may go on, drop a state for a newer one, or delete what was erased.
    async fn load_session(&self, listed: Listed, place: &Place<'_>) -> Result<Loaded, Error> {
        let session = listed.session;
        let loaded = self.try_load(listed, place).await?;
        // A segment that can't be used does not keep its session from being restored.
        if loaded.restored || loaded.missing.is_empty() {
            return Ok(loaded);
        }
        match Sessions::only(place.objects, session).next().await? {
            Some(listed) => self.try_load(listed, place).await,
            None => Ok(Loaded::default()),
        }
    }

    async fn try_load(&self, listed: Listed, place: &Place<'_>) -> Result<Loaded, Error> {
        let mut loaded = Loaded::default();
        let session = listed.session;
        let stored = self.store.stored_sessions(&[session]).await?.remove(&session);
        if stored.is_some_and(|partition| place.starts.offsets.contains_key(&partition)) {
            return Ok(loaded);
        }
        let choice = choose(place.objects, &self.topic, &listed, &place.starts).await?;
        if let Some((key, reason)) = choice.unusable()
            && stored.is_none()
        {
            let reason = reason.to_owned();
            loaded.missing.push(Missing::State { session, key, reason });
        }
        if let Choice::Topic(key, archived) | Choice::State(key, archived) = &choice
            && key.incarnation == place.starts.incarnation
        {
            self.check_end(archived).await?;
        }
        let Choice::State(key, archived) = choice else {
            return Ok(loaded);
        };
        let last = archived.restored.session.last_entry_seq;
        let listed = match listed.reaches(last) {
            true => listed,
            // A state is put after the segments that it rests on, so those are listed by now.
            false => Sessions::only(place.objects, session)
                .next()
                .await?
                .unwrap_or(listed),
        };
        self.store.clear_pieces(place.epoch, session).await?;
        if let Some(missing) = self.load_unfinished(place, key, &archived).await? {
            loaded.missing.push(missing);
            return Ok(loaded);
        }
        // What begins behind the state's last entry is in the topic, and will be archived from there.
        let segments = listed.segments.into_iter();
        let segments: Vec<_> = segments.filter(|(key, _)| key.min_entry_seq <= last).collect();
        self.load_segments(place, session, segments, &mut loaded).await?;
        self.store
            .restore_session(place.epoch, &archived.restored)
            .await?;
        loaded.restored = true;
        Ok(loaded)
    }

    /// The log must reach as far as the state does. It is asked now: whoever made the state may still be going on.
    async fn check_end(&self, archived: &ArchivedState) -> Result<(), Error> {
        let (partition, next_offset) = (archived.partition(), archived.next_offset());
        let high = self.reader.watermarks(partition).await?.high;
        match next_offset > high {
            true => Err(Error::LogTooShort {
                partition,
                next_offset,
                high,
            }),
            false => Ok(()),
        }
    }

    async fn load_unfinished(
        &self,
        place: &Place<'_>,
        key: SnapshotKey,
        archived: &ArchivedState,
    ) -> Result<Option<Missing>, Error> {
        if archived.unfinished.is_empty() {
            return Ok(None);
        }
        let entry_seq = archived.restored.session.last_entry_seq + 1;
        let (store, digests) = ((&self.store, place.epoch), &archived.unfinished);
        let restored = unfinished::restore(store, place.objects, key, entry_seq, digests).await?;
        Ok(restored.err().map(|reason| Missing::State {
            session: key.session,
            key: ObjectName::Parts(key).to_string(),
            reason,
        }))
    }

    async fn load_segments(
        &self,
        place: &Place<'_>,
        session: SessionId,
        segments: Vec<(SegmentKey, u64)>,
        loaded: &mut Loaded,
    ) -> Result<(), Error> {
        let described = stream::iter(segments)
            .map(|(key, bytes)| async move { (key, describe_stored(place.objects, key, bytes).await) })
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
            self.store.restore_segments(place.epoch, session, &rows).await?;
            loaded.segments += rows.len() as u64;
        }
        Ok(())
    }
}

pub(super) fn tell(hear: &Hear, phase: ReplayPhase, done: u64, total: Option<u64>) {
    hear(&ReplayProgress { phase, done, total });
}
