//! Objects that the manifest has already, and those that it has as copies.

use wakelog_store::{
    ArchivedObject, BatchWrites, Error, Flushed, Recorded, Refusal, SegmentKind, SnapshotCause, Store,
};

use crate::support::Database;
use crate::support::archive::{entries, hot_entries, lost_entries, object, stage, stage_and_flush};
use crate::support::rows::{Owner, part, session};

on_both_pools!(
    a_key_that_is_recorded_prunes_nothing_and_is_staged_no_more,
    archived_is_complete_a_snapshot_segment_prunes_nothing,
    a_flush_takes_over_the_object_of_a_snapshot,
);

const DONE_SUPERSEDED: Flushed = Flushed::Done {
    kind: SegmentKind::Superseded,
    remarked: 0,
};

async fn kinds(store: &Store) -> Vec<SegmentKind> {
    let segments = store.segments_page(session(1), None, 100).await.unwrap();
    segments.iter().map(|segment| segment.kind).collect()
}

async fn a_key_that_is_recorded_prunes_nothing_and_is_staged_no_more(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 6, 5)).await;
    let object = object(session(1), 1, 4);
    assert_eq!(
        stage_and_flush(&store, session(1), object.clone()).await,
        DONE_SUPERSEDED
    );
    // A hot tail that has the rows again.
    let again = BatchWrites {
        sessions: Vec::new(),
        lifetimes: Vec::new(),
        ..entries(session(1), 1, 4, 0)
    };
    owner.write(again).await;
    let refused = Flushed::Refused(Refusal::AlreadyRecorded);
    assert_eq!(stage_and_flush(&store, session(1), object.clone()).await, refused);
    assert_eq!(hot_entries(&store, session(1)).await, [1, 2, 3, 4, 5, 6]);
    assert!(store.staged_objects(session(1)).await.unwrap().is_empty());
    assert_eq!(kinds(&store).await, [SegmentKind::Superseded]);
    let staging = stage(&store, session(1), &object.key).await;
    let recorded = store
        .record_snapshot_segment(session(1), staging, &object, SnapshotCause::Retention)
        .await;
    assert_eq!(recorded.unwrap(), Recorded::Refused(Refusal::AlreadyRecorded));
    assert_eq!(kinds(&store).await, [SegmentKind::Superseded]);
    assert!(store.staged_objects(session(1)).await.unwrap().is_empty());
}

async fn archived_is_complete_a_snapshot_segment_prunes_nothing(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let mut writes = entries(session(1), 1, 6, 5);
    writes.parts.push(part(session(1), 7, 0, b"unfinished"));
    owner.write(writes).await;
    // It may hold the checkpoint, and deltas of both sides of it; but complete entries only.
    let too_long = object(session(1), 1, 7);
    let staging = stage(&store, session(1), &too_long.key).await;
    let error = store
        .record_snapshot_segment(session(1), staging, &too_long, SnapshotCause::SessionEnd)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Bug(_)), "{error}");
    for (object, cause) in [
        (object(session(1), 1, 6), SnapshotCause::SessionEnd),
        (object(session(1), 2, 6), SnapshotCause::Retention),
    ] {
        let staging = stage(&store, session(1), &object.key).await;
        let recorded = store
            .record_snapshot_segment(session(1), staging, &object, cause)
            .await;
        assert_eq!(recorded.unwrap(), Recorded::Done);
        let again = store
            .record_snapshot_segment(session(1), staging, &object, cause)
            .await;
        assert_eq!(again.unwrap(), Recorded::Refused(Refusal::NotStaged));
    }
    assert_eq!(
        kinds(&store).await,
        [SegmentKind::SessionEnd, SegmentKind::Retention]
    );
    assert_eq!(hot_entries(&store, session(1)).await, [1, 2, 3, 4, 5, 6, 7]);
}

async fn a_flush_takes_over_the_object_of_a_snapshot(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 4, 0)).await;
    let object = object(session(1), 1, 4);
    let staging = stage(&store, session(1), &object.key).await;
    store
        .record_snapshot_segment(session(1), staging, &object, SnapshotCause::SessionEnd)
        .await
        .unwrap();
    // The session goes on, and a checkpoint supersedes exactly what the snapshot archived: the same bytes, so the
    // same key.
    owner.write(entries(session(1), 5, 5, 5)).await;
    // Another digest under this key is not the object that is recorded.
    let of_other_bytes = ArchivedObject {
        object_digest: [8; 32],
        ..object.clone()
    };
    assert_eq!(
        stage_and_flush(&store, session(1), of_other_bytes).await,
        Flushed::Refused(Refusal::AlreadyRecorded)
    );
    assert_eq!(hot_entries(&store, session(1)).await, [1, 2, 3, 4, 5]);
    assert_eq!(stage_and_flush(&store, session(1), object).await, DONE_SUPERSEDED);
    assert_eq!(kinds(&store).await, [SegmentKind::Superseded]);
    assert_eq!(hot_entries(&store, session(1)).await, [5]);
    assert!(
        lost_entries(&mut database.raw().await, session(1))
            .await
            .is_empty()
    );
}
