use std::time::Duration;

use wakelog_store::{
    ArchivedObject, BatchWrites, Effect, Error, Flush, Flushed, Options, PartRow, Recorded, Refusal,
    SegmentKind, SnapshotCause, Store,
};

use crate::support::Database;
use crate::support::archive::{
    archived_ranges, entries, hot_entries, lost_entries, object, stage, stage_and_flush,
};
use crate::support::proxy::{Loss, cut_at_commit};
use crate::support::rows::{Owner, part, session};

on_both_pools!(
    put_before_prune_a_flush_records_the_object_and_prunes_exactly_its_rows,
    put_before_prune_rows_that_moved_are_not_pruned,
    put_before_prune_a_flush_never_touches_a_checkpoint_or_an_unfinished_entry,
    put_before_prune_an_object_that_may_be_deleted_prunes_nothing,
    the_kind_is_the_one_of_the_moment_of_the_flush,
    a_checkpoint_re_marks_the_valve_segments_before_it,
    an_erased_session_is_not_flushed,
    a_number_of_an_object_that_does_not_fit_is_a_typed_error,
);

const DONE_SUPERSEDED: Flushed = Flushed::Done {
    kind: SegmentKind::Superseded,
    remarked: 0,
};
const DONE_VALVE: Flushed = Flushed::Done {
    kind: SegmentKind::SafetyValve,
    remarked: 0,
};

async fn kinds(store: &Store) -> Vec<SegmentKind> {
    let segments = store.segments_page(session(1), None, 100).await.unwrap();
    segments.iter().map(|segment| segment.kind).collect()
}

async fn put_before_prune_a_flush_records_the_object_and_prunes_exactly_its_rows(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let mut writes = entries(session(1), 1, 6, 5);
    writes.parts.push(part(session(1), 2, 1, b"second part"));
    owner.write(writes).await;
    owner.write(entries(session(2), 1, 6, 5)).await;

    let object = ArchivedObject {
        part_rows: 4,
        ..object(session(1), 2, 4)
    };
    assert_eq!(
        stage_and_flush(&store, session(1), object.clone()).await,
        DONE_SUPERSEDED
    );
    assert_eq!(hot_entries(&store, session(1)).await, [1, 5, 6]);
    assert_eq!(hot_entries(&store, session(2)).await, [1, 2, 3, 4, 5, 6]);
    assert!(store.staged_objects(session(1)).await.unwrap().is_empty());
    let row = store.segment(session(1), &object.key).await.unwrap().unwrap();
    assert!(row.archived_at_ms > 0);
    assert_eq!(
        (row.session, &row.key, row.min_entry_seq, row.max_entry_seq),
        (session(1), &object.key, 2, 4)
    );
    assert_eq!(
        (
            row.kind,
            row.entries,
            row.plain_bytes,
            row.object_bytes,
            row.object_digest
        ),
        (SegmentKind::Superseded, 3, 10, 20, [7; 32])
    );
    assert_eq!(store.segment(session(2), &object.key).await.unwrap(), None);
}

async fn put_before_prune_rows_that_moved_are_not_pruned(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 6, 5)).await;
    // Made of three rows and two entries, or of rows that another flush took meanwhile.
    let more = ArchivedObject {
        part_rows: 3,
        ..object(session(1), 1, 2)
    };
    stage_and_flush(&store, session(1), object(session(1), 4, 4)).await;
    for (object, expected, found) in [(more, 3, 2), (object(session(1), 2, 4), 3, 2)] {
        let refused = Flushed::Refused(Refusal::RowsMoved { expected, found });
        let key = object.key.clone();
        assert_eq!(stage_and_flush(&store, session(1), object).await, refused);
        assert_eq!(store.segment(session(1), &key).await.unwrap(), None);
        let staged = store.staged_objects(session(1)).await.unwrap();
        assert!(staged.iter().any(|staged| staged.key == key), "{key}");
        assert_eq!(hot_entries(&store, session(1)).await, [1, 2, 3, 5, 6]);
        assert_eq!(database.open_transactions().await, 0);
    }
    // Read again, it goes through.
    let again = stage_and_flush(&store, session(1), object(session(1), 1, 3)).await;
    assert_eq!(again, DONE_SUPERSEDED);
    assert!(
        lost_entries(&mut database.raw().await, session(1))
            .await
            .is_empty()
    );
}

async fn put_before_prune_a_flush_never_touches_a_checkpoint_or_an_unfinished_entry(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let mut writes = entries(session(1), 1, 6, 3);
    let unfinished = PartRow {
        last: false,
        ..part(session(1), 7, 0, b"unfinished")
    };
    writes.parts.push(unfinished);
    owner.write(writes).await;
    for (min, max) in [(1, 3), (3, 3), (3, 5), (2, 4), (5, 7), (7, 7)] {
        let object = object(session(1), min, max);
        let staging = stage(&store, session(1), &object.key).await;
        let flush = Flush {
            session: session(1),
            staging,
            object,
        };
        let error = store.flush(&flush).await.unwrap_err();
        assert!(matches!(error, Error::Bug(_)), "{error}");
        assert_eq!(error.effect(), Effect::CertainlyNot);
    }
    let error = store.stage_object(session(9), "key").await.unwrap_err();
    assert!(matches!(error, Error::Bug(_)), "{error}");
    assert_eq!(hot_entries(&store, session(1)).await, [1, 2, 3, 4, 5, 6, 7]);
    assert!(archived_ranges(&store, session(1)).await.is_empty());
}

async fn put_before_prune_an_object_that_may_be_deleted_prunes_nothing(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 6, 5)).await;
    let object = object(session(1), 1, 4);
    let staging = stage(&store, session(1), &object.key).await;
    let frozen = Flush {
        session: session(1),
        staging,
        object: object.clone(),
    };
    let not_staged = Flushed::Refused(Refusal::NotStaged);

    let condemned = store
        .condemn_object(session(1), &object.key, Duration::ZERO)
        .await
        .unwrap();
    assert!(condemned);
    assert_eq!(store.flush(&frozen).await.unwrap(), not_staged);
    // The object is deleted.
    store.forget_condemned(&object.key).await.unwrap();
    assert_eq!(store.flush(&frozen).await.unwrap(), not_staged);
    // Another archiver is about to put the same object: that is not the one that was deleted.
    let staging = stage(&store, session(1), &object.key).await;
    assert_eq!(store.flush(&frozen).await.unwrap(), not_staged);
    assert_eq!(hot_entries(&store, session(1)).await, [1, 2, 3, 4, 5, 6]);
    assert!(archived_ranges(&store, session(1)).await.is_empty());

    let flush = Flush { staging, ..frozen };
    assert_eq!(store.flush(&flush).await.unwrap(), DONE_SUPERSEDED);
    assert_eq!(store.flush(&flush).await.unwrap(), not_staged);
}

async fn the_kind_is_the_one_of_the_moment_of_the_flush(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 6, 1)).await;
    let chosen_as_valve = object(session(1), 2, 3);
    let staging = stage(&store, session(1), &chosen_as_valve.key).await;
    assert_eq!(
        stage_and_flush(&store, session(1), object(session(1), 4, 5)).await,
        DONE_VALVE
    );
    owner.write(entries(session(1), 7, 7, 7)).await;
    let flush = Flush {
        session: session(1),
        staging,
        object: chosen_as_valve,
    };
    let flushed = store.flush(&flush).await.unwrap();
    assert_eq!(
        flushed,
        Flushed::Done {
            kind: SegmentKind::Superseded,
            remarked: 1
        }
    );
    assert_eq!(hot_entries(&store, session(1)).await, [1, 6, 7]);
}

async fn a_checkpoint_re_marks_the_valve_segments_before_it(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    for number in [1, 2] {
        owner.write(entries(session(number), 1, 9, 1)).await;
        for (min, max) in [(2, 3), (4, 5), (6, 7)] {
            let object = object(session(number), min, max);
            assert_eq!(stage_and_flush(&store, session(number), object).await, DONE_VALVE);
        }
    }
    // The checkpoint itself is no reason to touch the manifest; the flush that prunes for it does.
    owner.write(entries(session(1), 10, 12, 10)).await;
    assert_eq!(kinds(&store).await, [SegmentKind::SafetyValve; 3]);
    let flushed = stage_and_flush(&store, session(1), object(session(1), 8, 9)).await;
    assert_eq!(
        flushed,
        Flushed::Done {
            kind: SegmentKind::Superseded,
            remarked: 3
        }
    );
    assert_eq!(kinds(&store).await, [SegmentKind::Superseded; 4]);
    let of_another = store.segments_page(session(2), None, 9).await.unwrap();
    assert!(
        of_another
            .iter()
            .all(|segment| segment.kind == SegmentKind::SafetyValve)
    );
    // Deltas after the checkpoint are valve segments again, and stay so.
    assert_eq!(
        stage_and_flush(&store, session(1), object(session(1), 11, 11)).await,
        DONE_VALVE
    );
    assert_eq!(
        stage_and_flush(&store, session(1), object(session(1), 1, 1)).await,
        DONE_SUPERSEDED
    );
    let segments = store.segments_overlapping(session(1), 11, 11, 9).await.unwrap();
    assert_eq!(segments[0].kind, SegmentKind::SafetyValve);
}

async fn an_erased_session_is_not_flushed(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 6, 5)).await;
    let object = object(session(1), 1, 4);
    let staging = stage(&store, session(1), &object.key).await;
    owner
        .write(BatchWrites {
            erased: vec![session(1)],
            ..BatchWrites::default()
        })
        .await;
    let recorded = store
        .record_snapshot_segment(session(1), staging, &object, SnapshotCause::SessionEnd)
        .await;
    assert_eq!(recorded.unwrap(), Recorded::Refused(Refusal::Erased));
    let flush = Flush {
        session: session(1),
        staging,
        object,
    };
    assert_eq!(
        store.flush(&flush).await.unwrap(),
        Flushed::Refused(Refusal::Erased)
    );
    assert!(archived_ranges(&store, session(1)).await.is_empty());
}

async fn a_number_of_an_object_that_does_not_fit_is_a_typed_error(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 6, 5)).await;
    let wrong = ArchivedObject {
        object_bytes: u64::MAX,
        ..object(session(1), 1, 4)
    };
    let staging = stage(&store, session(1), &wrong.key).await;
    let flush = Flush {
        session: session(1),
        staging,
        object: wrong,
    };
    let error = store.flush(&flush).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::OutOfRange {
                what: "object_bytes",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.effect(), Effect::CertainlyNot);
    assert_eq!(hot_entries(&store, session(1)).await.len(), 6);
}

/// A flush whose COMMIT is lost on the way; whether it happened.
async fn lose_commit(loss: Loss) -> bool {
    let database = Database::empty().await;
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 6, 5)).await;
    let (before_port, name) = database.url.rsplit_once('/').unwrap();
    let (host, port) = before_port.rsplit_once(':').unwrap();
    let proxy = cut_at_commit(port.parse().unwrap(), loss).await;
    let options = Options {
        url: format!("{host}:{proxy}/{name}"),
        ..database.options()
    };
    let cut_off = Store::connect(options).await.unwrap();

    let object = object(session(1), 1, 4);
    let flush = Flush {
        session: session(1),
        staging: stage(&cut_off, session(1), &object.key).await,
        object,
    };
    let error = cut_off.flush(&flush).await.unwrap_err();
    assert!(
        matches!(error, Error::ArchiveCommitUnknown { what: "flush", .. }),
        "{error}"
    );
    assert_eq!(error.effect(), Effect::Unknown);
    // It may still be on its way: whoever locks the row waits until it is over.
    sqlx::raw_sql("SELECT FROM agent_sessions FOR UPDATE")
        .execute(&mut database.raw().await)
        .await
        .unwrap();
    let happened = cut_off
        .segment(session(1), &flush.object.key)
        .await
        .unwrap()
        .is_some();
    assert_eq!(hot_entries(&store, session(1)).await.len() == 2, happened);
    assert!(
        lost_entries(&mut database.raw().await, session(1))
            .await
            .is_empty()
    );
    happened
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn put_before_prune_a_flush_that_was_committed_without_an_answer_is_found() {
    assert!(lose_commit(Loss::OfTheAnswer).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn put_before_prune_a_flush_whose_commit_never_arrived_did_nothing() {
    assert!(!lose_commit(Loss::OfTheRequest).await);
}
