//! Archiving a session as a whole, so that it can be rebuilt when the hot tail is lost and the topic has dropped its records
//! (archived-is-complete).
//!
//! Read first: the state, the partition's offset and the lifetimes, all of one moment. Then every complete entry up to that
//! state's last is in a segment, then the unfinished parts are in an object, then the state, and only then older states go.

use bytes::{Bytes, BytesMut};
use prost::Message as _;
use sha2::{Digest as _, Sha256};
use wakelog_archive::{
    ObjectName, PARTS_PREFIX, STATE_FORMAT, STATES_PREFIX, SnapshotKey, SpoolOptions, SpoolWriter,
    session_prefix,
};
use wakelog_model::SessionId;
use wakelog_model::limits::MAX_PARTS;
use wakelog_proto::v1::{ArchivedLifetime, ArchivedPart, ArchivedSession, LifetimeStatus};
use wakelog_store::{LifetimeRow, PartRow, SnapshotCause, SnapshotRow, SnapshotSource, UnfinishedEntry};

use crate::moving::{Moved, Then};
use crate::shared::Shared;
use crate::uncovered::{EntryRange, uncovered};
use crate::{Error, failpoint, telemetry};

/// Runs and segments that are looked at a time. If there are more, some entries are archived twice, which does no harm.
const RUNS: u32 = 1_000;
const SEGMENTS: u32 = 10_000;

/// How often entries are looked at anew because something else moved them.
const ROUNDS: u32 = 4;

impl Shared {
    /// Archives the session as a whole, unless nothing happened to it since the last time.
    pub(crate) async fn snapshot(&self, session: SessionId, cause: SnapshotCause) -> Result<(), Error> {
        let Some(source) = self.store.snapshot_source(&self.options.topic, session).await? else {
            return Ok(());
        };
        let taken = self.store.snapshots(session).await?;
        if taken.len() > 1 {
            // Whoever took the newest did not come so far.
            self.drop_older_states(session).await?;
        }
        let newest = taken.iter().max_by_key(|row| (row.incarnation, row.next_offset));
        let is_current = newest.is_some_and(|newest| newest.row_version == source.row_version);
        let has_cause = cause == SnapshotCause::Retention || has_ended(&source.lifetimes);
        if source.erased || is_current || !has_cause {
            return Ok(());
        }
        self.copy_entries(session, source.last_entry_seq, cause).await?;
        let key = SnapshotKey {
            session,
            incarnation: source.incarnation,
            offset: source.next_offset,
        };
        if let Some(unfinished) = &source.unfinished {
            self.put_unfinished(key, unfinished).await?;
        }
        failpoint::reach(failpoint::BEFORE_STATE)?;
        let state = archived_session(&self.options.topic, &source);
        let name = ObjectName::State(key).to_string();
        self.objects
            .put_bytes(&name, state.encode_to_vec().into())
            .await?;
        failpoint::reach(failpoint::AFTER_STATE)?;
        let row = SnapshotRow {
            session,
            incarnation: source.incarnation,
            next_offset: source.next_offset,
            last_entry_seq: source.last_entry_seq,
            row_version: source.row_version,
        };
        if !self.store.record_snapshot(&self.options.topic, &row).await? {
            // Erased meanwhile: the sweep takes the object too. Or the database has lost what the state is made of, and is folded
            // again: then the session is due as before.
            return Ok(());
        }
        telemetry::snapshot(cause.segment_kind().name());
        tracing::info!(%session, offset = row.next_offset, entries = row.last_entry_seq, "archived a session's state");
        self.drop_older_states(session).await
    }

    /// Sees to it that every complete entry up to `last` is in a segment.
    async fn copy_entries(&self, session: SessionId, last: u64, cause: SnapshotCause) -> Result<(), Error> {
        for _ in 0..ROUNDS {
            let left = self.uncovered_runs(session, last).await?;
            if left.is_empty() {
                return Ok(());
            }
            for run in left {
                if self.move_run(session, run, Then::Keep(cause)).await? == Moved::Overtaken {
                    // What is gone from the hot tail is in a segment by now.
                    break;
                }
            }
        }
        Err(Error::Changed { session })
    }

    async fn uncovered_runs(&self, session: SessionId, last: u64) -> Result<Vec<EntryRange>, Error> {
        let runs = self.store.hot_runs(session, 1, last, RUNS).await?;
        let tails = self.store.hot_tails(&[session]).await?;
        if tails.first().is_none_or(|tail| tail.last_entry_seq < last) {
            // The database has lost commits since the state was read, and entries with them.
            return Err(Error::Changed { session });
        }
        let (Some((first, _)), Some((_, end))) = (runs.first(), runs.last()) else {
            return Ok(Vec::new());
        };
        let segments = self
            .store
            .segments_overlapping(session, *first, *end, SEGMENTS)
            .await?;
        let mut ranges: Vec<EntryRange> = segments
            .iter()
            .map(|segment| (segment.min_entry_seq, segment.max_entry_seq))
            .collect();
        ranges.sort_unstable();
        Ok(uncovered(&runs, &ranges))
    }

    /// The parts that the state knows of the entry that was not complete. If a bind has discarded them since, the state is
    /// not today's any more either.
    async fn put_unfinished(&self, key: SnapshotKey, unfinished: &UnfinishedEntry) -> Result<(), Error> {
        let session = key.session;
        let mut spool = SpoolWriter::new(SpoolOptions {
            folder: self.options.spool_folder.clone(),
            ..SpoolOptions::default()
        });
        let mut digest = Sha256::new();
        let mut due = 0;
        let mut after = Some((unfinished.entry_seq.saturating_sub(1), MAX_PARTS));
        while due < unfinished.parts {
            let page = self
                .store
                .parts_page(session, after, unfinished.entry_seq, self.options.page_bytes)
                .await?;
            if page.is_empty() {
                return Err(Error::Changed { session });
            }
            for row in page {
                after = Some((row.entry_seq, row.part));
                if due == unfinished.parts {
                    break;
                }
                if row.part != due || row.generation != unfinished.generation {
                    return Err(Error::Changed { session });
                }
                due += 1;
                let part = archived_part(row);
                let mut bytes = BytesMut::new();
                part.encode_length_delimited(&mut bytes)
                    .map_err(|_| Error::Changed { session })?;
                digest.update(&bytes);
                spool.append(&bytes)?;
            }
        }
        let name = ObjectName::Parts(key).to_string();
        self.objects
            .put(&name, &spool.finish(), digest.finalize().into())
            .await?;
        Ok(())
    }

    async fn drop_older_states(&self, session: SessionId) -> Result<(), Error> {
        let taken = self.store.snapshots(session).await?;
        // The newest first. An older one must not be there for a rebuild to find: if the newest were lost, a fence could be lost with
        // it and nobody would know.
        let Some(newest) = taken.first() else {
            return Ok(());
        };
        let is_older =
            |key: &SnapshotKey| (key.incarnation, key.offset) < (newest.incarnation, newest.next_offset);
        // By listing: one that a death has left, or a database that was lost, is in no table.
        let (states, parts) = self.states_and_parts(session).await?;
        // The states first: one without its parts would be worse than parts without a state.
        for old in states.into_iter().filter(is_older) {
            self.objects.delete(&ObjectName::State(old).to_string()).await?;
        }
        for old in parts.into_iter().filter(is_older) {
            self.objects.delete(&ObjectName::Parts(old).to_string()).await?;
        }
        self.store
            .drop_snapshots_before(session, newest.incarnation, newest.next_offset)
            .await?;
        Ok(())
    }

    /// The states of the session that are there, and the unfinished parts of states. What is more than a page is found the next
    /// time.
    async fn states_and_parts(
        &self,
        session: SessionId,
    ) -> Result<(Vec<SnapshotKey>, Vec<SnapshotKey>), Error> {
        let (mut states, mut parts) = (Vec::new(), Vec::new());
        for prefix in [STATES_PREFIX, PARTS_PREFIX] {
            let prefix = format!("{}{prefix}", session_prefix(session));
            for object in self.objects.list_page(&prefix, None).await?.objects {
                match ObjectName::parse(&object.key) {
                    ObjectName::State(key) => states.push(key),
                    ObjectName::Parts(key) => parts.push(key),
                    _ => {}
                }
            }
        }
        Ok((states, parts))
    }
}

fn has_ended(lifetimes: &[LifetimeRow]) -> bool {
    let current = lifetimes.iter().max_by_key(|lifetime| lifetime.generation);
    current.is_some_and(|lifetime| lifetime.status == LifetimeStatus::Ended as i32)
}

fn archived_session(topic: &str, source: &SnapshotSource) -> ArchivedSession {
    ArchivedSession {
        format: STATE_FORMAT,
        session_id: source.session.to_string(),
        topic: topic.to_owned(),
        incarnation: source.incarnation,
        partition: source.partition,
        next_offset: source.next_offset,
        fold_state: source.state.clone(),
        opened_at_us: source.opened_at_us,
        updated_at_us: source.updated_at_us,
        lifetimes: source.lifetimes.iter().map(archived_lifetime).collect(),
        unfinished_entry_seq: source.unfinished.map_or(0, |entry| entry.entry_seq),
        unfinished_parts: source.unfinished.map_or(0, |entry| entry.parts),
    }
}

fn archived_lifetime(row: &LifetimeRow) -> ArchivedLifetime {
    ArchivedLifetime {
        generation: row.generation,
        lifetime_id: Bytes::copy_from_slice(row.lifetime_id.as_bytes()),
        request_id: row.request_id.clone(),
        base: row.base,
        body_start: row.body_start,
        writer_nonce: row
            .nonce
            .map_or_else(Bytes::new, |nonce| Bytes::copy_from_slice(nonce.as_bytes())),
        applied_seq: row.applied_seq,
        status: row.status,
        bound_at_ms: row.bound_at_ms,
    }
}

fn archived_part(row: PartRow) -> ArchivedPart {
    ArchivedPart {
        part: row.part,
        checkpoint: row.checkpoint,
        generation: row.generation,
        encoding: row.encoding,
        plain_length: row.plain_length,
        part_digest: Bytes::copy_from_slice(row.part_digest.as_bytes()),
        body: row.body,
    }
}
