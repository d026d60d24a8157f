//! A batch that is stopped at each step on its way to COMMIT. A test target of its own: failpoints are global to the
//! process.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use fail::FailScenario;
use wakelog_store::{AccessWrite, BatchWrites, Effect, Error};

use crate::support::Database;
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
    assert_eq!((claim.epoch, claim.next_offset), (2, 1));
    assert_eq!(store.body_length(session(1), 1, 2).await.unwrap(), 6);
    assert_eq!(store.quarantined_of_session(session(1)).await.unwrap(), 0);
    scenario.teardown();
}
