//! A batch and a flush that are stopped at each step on their way to COMMIT. A test target of its own: failpoints are global to the
//! process.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use fail::FailScenario;
use wakelog_store::{AccessWrite, BatchWrites, Effect, Error, Flush, Flushed, Refusal, SegmentKind, Store};

use crate::support::Database;
use crate::support::archive::{archived_ranges, entries, hot_entries, object, stage, stage_and_flush};
use crate::support::rows::{Owner, TOPIC, part, quarantined, session, session_with_entries};

fn everything() -> BatchWrites {
    BatchWrites {
        access: vec![AccessWrite {
            session: session(1),
            account: "bob".to_owned(),
            role: 1,
        }],
        quarantined: vec![quarantined(0, b"key", b"raw")],
        discarded_entries: vec![(session(2), 1)],
        ..session_with_entries(session(1), &[b"one", b"two"])
    }
}

async fn stop_at(database: Database, failpoint: &'static str) {
    let scenario = FailScenario::setup();
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let unfinished = BatchWrites {
        parts: vec![part(session(2), 1, 0, b"unfinished")],
        ..BatchWrites::default()
    };
    owner.write(unfinished).await;
    let before = store.progress(TOPIC, 0).await.unwrap();

    fail::cfg(failpoint, "return").unwrap();
    let error = owner.try_write(&everything()).await.unwrap_err();
    assert!(
        matches!(error, Error::Failpoint { name } if name == failpoint),
        "{error}"
    );
    assert_eq!(error.effect(), Effect::CertainlyNot);
    fail::remove(failpoint);

    assert_eq!(store.progress(TOPIC, 0).await.unwrap(), before, "{failpoint}");
    assert_eq!(database.rows().await, 1, "{failpoint}");
    assert_eq!(database.open_transactions().await, 0, "{failpoint}");
    // The same batch goes through once nothing stops it.
    owner.write(everything()).await;
    assert_eq!(store.body_length(session(1), 1, 2).await.unwrap(), 6);
    assert_eq!(store.body_length(session(2), 1, 2).await.unwrap(), 0);
    scenario.teardown();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_stops_before_commit_leaves_nothing() {
    for failpoint in [
        "store::before_begin",
        "store::after_lock",
        "store::after_write",
        "store::before_commit",
    ] {
        stop_at(Database::empty().await, failpoint).await;
        stop_at(Database::empty_single().await, failpoint).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_stops_after_commit_is_unknown_and_whole() {
    let scenario = FailScenario::setup();
    let database = Database::empty_single().await;
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    fail::cfg("store::after_commit", "return").unwrap();
    let error = owner.try_write(&everything()).await.unwrap_err();
    assert!(matches!(error, Error::CommitUnknown { .. }), "{error}");
    assert_eq!(error.effect(), Effect::Unknown);
    fail::remove("store::after_commit");

    // What the persister does then: claim again and go on from what the store says.
    let claim = store.claim_partition(TOPIC, 0).await.unwrap();
    assert_eq!(claim.next_offset, 1);
    assert_eq!(store.body_length(session(1), 1, 2).await.unwrap(), 6);
    assert_eq!(store.quarantined_of_session(session(1)).await.unwrap(), 0);
    scenario.teardown();
}

/// A flush that is ready to go, of entries 1 to 4 of session 1.
async fn prepared_flush(store: &Store) -> Flush {
    let mut owner = Owner::claim(store).await;
    owner.write(entries(session(1), 1, 6, 5)).await;
    let object = object(session(1), 1, 4);
    Flush {
        session: session(1),
        staging: stage(store, session(1), &object.key).await,
        object,
    }
}

async fn stop_flush_at(database: Database, failpoint: &'static str) {
    let scenario = FailScenario::setup();
    let store = database.store().await;
    let flush = prepared_flush(&store).await;
    fail::cfg(failpoint, "return").unwrap();
    let error = store.flush(&flush).await.unwrap_err();
    assert!(
        matches!(error, Error::Failpoint { name } if name == failpoint),
        "{error}"
    );
    assert_eq!(error.effect(), Effect::CertainlyNot);
    fail::remove(failpoint);

    assert!(
        archived_ranges(&store, session(1)).await.is_empty(),
        "{failpoint}"
    );
    assert_eq!(hot_entries(&store, session(1)).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(store.staged_objects(session(1)).await.unwrap().len(), 1);
    assert_eq!(database.open_transactions().await, 0, "{failpoint}");
    // Whoever comes next may choose other bounds.
    for (min, max) in [(1, 3), (4, 4)] {
        let flushed = stage_and_flush(&store, session(1), object(session(1), min, max)).await;
        assert!(matches!(flushed, Flushed::Done { .. }), "{flushed:?}");
    }
    assert_eq!(archived_ranges(&store, session(1)).await, [(1, 3), (4, 4)]);
    assert_eq!(hot_entries(&store, session(1)).await, [5, 6]);
    // The one that stopped wakes up: it is too late.
    let late = store.flush(&flush).await.unwrap();
    let refused = Refusal::RowsMoved {
        expected: 4,
        found: 0,
    };
    assert_eq!(late, Flushed::Refused(refused));
    scenario.teardown();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn put_before_prune_a_flush_that_stops_before_commit_leaves_both_or_neither() {
    for failpoint in ["store::flush_after_delete", "store::flush_before_commit"] {
        stop_flush_at(Database::empty().await, failpoint).await;
        stop_flush_at(Database::empty_single().await, failpoint).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn put_before_prune_a_flush_that_stops_after_commit_is_unknown_and_whole() {
    let scenario = FailScenario::setup();
    let database = Database::empty_single().await;
    let store = database.store().await;
    let flush = prepared_flush(&store).await;
    fail::cfg("store::flush_after_commit", "return").unwrap();
    let error = store.flush(&flush).await.unwrap_err();
    assert!(matches!(error, Error::ArchiveCommitUnknown { .. }), "{error}");
    assert_eq!(error.effect(), Effect::Unknown);
    fail::remove("store::flush_after_commit");

    let segment = store.segment(session(1), &flush.object.key).await.unwrap();
    assert_eq!(segment.unwrap().kind, SegmentKind::Superseded);
    assert_eq!(hot_entries(&store, session(1)).await, [5, 6]);
    assert!(store.staged_objects(session(1)).await.unwrap().is_empty());
    let again = store.flush(&flush).await.unwrap();
    assert_eq!(again, Flushed::Refused(Refusal::NotStaged));
    scenario.teardown();
}
