//! Entries and segments as an archiver would see and write them.

use sqlx::PgConnection;
use wakelog_model::SessionId;
use wakelog_store::{
    ArchivedObject, BatchWrites, Flush, Flushed, LifetimeWrite, PartRow, SessionWrite, Staged, Staging, Store,
};

use super::rows::{ACTIVE, lifetime_write, part, session_write};

pub fn segment_key(session: SessionId, min: u64, max: u64) -> String {
    format!("sessions/{session}/{min:020}-{max:020}-0123456789abcdef.jsonl.zst")
}

/// A segment of entries of one part each.
pub fn object(session: SessionId, min: u64, max: u64) -> ArchivedObject {
    ArchivedObject {
        key: segment_key(session, min, max),
        min_entry_seq: min,
        max_entry_seq: max,
        entries: max - min + 1,
        part_rows: max - min + 1,
        plain_bytes: 10,
        object_bytes: 20,
        object_digest: [7; 32],
    }
}

/// The session with these entries up to `last`, of one part each; the checkpoint may be one of them or an earlier one.
pub fn entries(session: SessionId, first: u64, last: u64, last_checkpoint_seq: u64) -> BatchWrites {
    BatchWrites {
        sessions: vec![SessionWrite {
            last_entry_seq: last,
            last_checkpoint_seq,
            generation: 1,
            lifetime_status: ACTIVE,
            ..session_write(session)
        }],
        lifetimes: vec![LifetimeWrite {
            applied_seq: last,
            ..lifetime_write(session, 1)
        }],
        parts: (first..=last)
            .map(|entry_seq| PartRow {
                checkpoint: entry_seq == last_checkpoint_seq,
                ..part(session, entry_seq, 0, format!("entry {entry_seq}\n").as_bytes())
            })
            .collect(),
        ..BatchWrites::default()
    }
}

pub async fn stage(store: &Store, session: SessionId, key: &str) -> Staging {
    match store.stage_object(session, key).await.unwrap() {
        Staged::Ready(staging) => staging,
        refused => panic!("{key}: {refused:?}"),
    }
}

pub async fn stage_and_flush(store: &Store, session: SessionId, object: ArchivedObject) -> Flushed {
    let staging = stage(store, session, &object.key).await;
    let flush = Flush {
        session,
        staging,
        object,
    };
    store.flush(&flush).await.unwrap()
}

/// The entries that the hot tail holds of the session.
pub async fn hot_entries(store: &Store, session: SessionId) -> Vec<u64> {
    let mut entries: Vec<u64> = store
        .parts_page(session, None, u64::MAX, usize::MAX)
        .await
        .unwrap()
        .iter()
        .map(|part| part.entry_seq)
        .collect();
    entries.dedup();
    entries
}

/// The ranges of the manifest, by key.
pub async fn archived_ranges(store: &Store, session: SessionId) -> Vec<(u64, u64)> {
    store
        .segments_page(session, None, 1_000)
        .await
        .unwrap()
        .iter()
        .map(|segment| (segment.min_entry_seq, segment.max_entry_seq))
        .collect()
}

/// Complete entries that are neither in the hot tail nor in a range of the manifest, seen at one moment
/// (archived-is-complete): none, ever.
pub async fn lost_entries(connection: &mut PgConnection, session: SessionId) -> Vec<i64> {
    sqlx::query_scalar(
        "SELECT entry_seq FROM agent_sessions AS s, generate_series(1, s.last_entry_seq) AS entry_seq
         WHERE s.session_id = $1
           AND NOT EXISTS (SELECT FROM agent_session_transcript_entries AS hot
                           WHERE hot.session_id = $1 AND hot.entry_seq = entry_seq.entry_seq)
           AND NOT EXISTS (SELECT FROM agent_session_archive_segments AS cold
                           WHERE cold.session_id = $1
                             AND entry_seq.entry_seq BETWEEN cold.min_entry_seq AND cold.max_entry_seq)",
    )
    .bind(session.0)
    .fetch_all(connection)
    .await
    .unwrap()
}
