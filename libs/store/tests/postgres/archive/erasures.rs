use std::time::Duration;

use wakelog_store::{BatchWrites, DueErasure, Error, SessionWrite, SnapshotRow, Store};

use crate::support::Database;
use crate::support::archive::{archived_ranges, entries, object, stage, stage_and_flush};
use crate::support::rows::{Owner, TOPIC, session, session_write};

on_both_pools!(
    an_erased_session_is_due_until_it_was_swept_often_enough,
    what_was_archived_is_known_until_it_is_swept,
    a_session_that_is_not_erased_is_not_swept,
);

const LONG: Duration = Duration::from_secs(3_600);

async fn due(store: &Store, resweep_after: Duration, max_sweeps: u32) -> Vec<(u128, u32)> {
    let due: Vec<DueErasure> = store
        .due_erasures(&[0, 2], resweep_after, max_sweeps, 100)
        .await
        .unwrap();
    due.iter()
        .map(|due| (due.session.0.as_u128(), due.sweeps))
        .collect()
}

async fn an_erased_session_is_due_until_it_was_swept_often_enough(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let child = SessionWrite {
        parent: Some(session(1)),
        ..session_write(session(2))
    };
    let elsewhere = SessionWrite {
        partition: 1,
        ..session_write(session(4))
    };
    owner
        .write(BatchWrites {
            sessions: vec![
                session_write(session(1)),
                child,
                session_write(session(3)),
                elsewhere,
            ],
            erased: vec![session(1), session(4)],
            ..BatchWrites::default()
        })
        .await;
    assert_eq!(due(&store, LONG, 0).await, [(1, 0), (2, 0)]);
    store.record_sweep(session(1)).await.unwrap();
    assert_eq!(due(&store, LONG, 3).await, [(2, 0)]);
    // Those that were never swept come first, then those that were swept long ago.
    assert_eq!(due(&store, Duration::ZERO, 3).await, [(2, 0), (1, 1)]);
    let first = store.due_erasures(&[0], Duration::ZERO, 3, 1).await.unwrap();
    assert_eq!(first[0].session, session(2));
    store.record_sweep(session(2)).await.unwrap();
    store.record_sweep(session(1)).await.unwrap();
    assert_eq!(due(&store, Duration::ZERO, 3).await, [(2, 1), (1, 2)]);
    assert_eq!(due(&store, Duration::ZERO, 2).await, [(2, 1)]);
    assert!(due(&store, Duration::MAX, 9).await.is_empty());
}

async fn what_was_archived_is_known_until_it_is_swept(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    for number in [1, 2] {
        let session = session(number);
        owner.write(entries(session, 1, 9, 9)).await;
        stage_and_flush(&store, session, object(session, 1, 4)).await;
        stage(&store, session, &object(session, 5, 8).key).await;
        let source = store.snapshot_source(TOPIC, session).await.unwrap().unwrap();
        let state = SnapshotRow {
            session,
            incarnation: 1,
            next_offset: source.next_offset,
            last_entry_seq: 9,
            row_version: source.row_version,
        };
        assert!(store.record_snapshot(TOPIC, &state).await.unwrap());
    }
    owner
        .write(BatchWrites {
            erased: vec![session(1)],
            ..BatchWrites::default()
        })
        .await;
    let known = async |number| {
        (
            archived_ranges(&store, session(number)).await.len(),
            store.staged_objects(session(number)).await.unwrap().len(),
            store.snapshots(session(number)).await.unwrap().len(),
        )
    };
    assert_eq!(known(1).await, (1, 1, 1));
    store.record_sweep(session(1)).await.unwrap();
    assert_eq!(known(1).await, (0, 0, 0));
    assert_eq!(known(2).await, (1, 1, 1));
}

async fn a_session_that_is_not_erased_is_not_swept(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 9, 9)).await;
    stage_and_flush(&store, session(1), object(session(1), 1, 4)).await;
    for number in [1, 8] {
        let error = store.record_sweep(session(number)).await.unwrap_err();
        assert!(matches!(error, Error::Bug(_)), "{error}");
    }
    assert_eq!(archived_ranges(&store, session(1)).await, [(1, 4)]);
    assert_eq!(
        database
            .number("SELECT count(*) FROM session_archive_erasures")
            .await,
        0
    );
    assert_eq!(database.open_transactions().await, 0);
}
