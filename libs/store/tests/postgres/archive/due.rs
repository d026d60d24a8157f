use std::time::Duration;

use wakelog_model::SessionId;
use wakelog_store::{BatchWrites, DueBy, SessionWrite, SnapshotRow, Store};

use crate::support::Database;
use crate::support::archive::entries;
use crate::support::rows::{Owner, TOPIC, session, session_write};

on_both_pools!(
    a_session_is_due_when_its_lifetime_has_ended_or_its_state_is_old,
    a_session_is_due_until_its_state_is_the_newest_and_again_when_it_changes,
    pages_look_at_every_session_once,
);

const ENDED: i32 = 2;
const LONG: Duration = Duration::from_secs(3_600);

async fn due(store: &Store, due_by: DueBy) -> Vec<SessionId> {
    let page = store.due_snapshots(&[0], due_by, None, 100).await.unwrap();
    assert_eq!(page.next_after, None);
    page.due
}

async fn read_state(store: &Store, session: SessionId) -> SnapshotRow {
    let source = store.snapshot_source(TOPIC, session).await.unwrap().unwrap();
    SnapshotRow {
        session,
        incarnation: source.incarnation,
        next_offset: source.next_offset,
        last_entry_seq: source.last_entry_seq,
        row_version: source.row_version,
    }
}

async fn take_state(store: &Store, session: SessionId) {
    let state = read_state(store, session).await;
    assert!(store.record_snapshot(TOPIC, &state).await.unwrap());
}

fn with_status(number: u128, lifetime_status: i32) -> SessionWrite {
    SessionWrite {
        lifetime_status,
        ..session_write(session(number))
    }
}

async fn a_session_is_due_when_its_lifetime_has_ended_or_its_state_is_old(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner
        .write(BatchWrites {
            sessions: vec![
                with_status(1, 1),
                with_status(2, ENDED),
                with_status(3, 3),
                with_status(4, ENDED),
                SessionWrite {
                    partition: 1,
                    ..with_status(5, ENDED)
                },
            ],
            erased: vec![session(4)],
            ..BatchWrites::default()
        })
        .await;
    assert_eq!(due(&store, DueBy::SessionEnd).await, [session(2)]);
    let every_age = DueBy::Age(Duration::ZERO);
    assert_eq!(due(&store, every_age).await, [session(1), session(2), session(3)]);
    assert!(due(&store, DueBy::Age(LONG)).await.is_empty());
    for number in [1, 2, 3] {
        take_state(&store, session(number)).await;
    }
    assert!(due(&store, every_age).await.is_empty());
    // Changed since; the age is that of the newest state.
    owner
        .write(BatchWrites {
            sessions: vec![with_status(1, 1), with_status(3, 1)],
            ..BatchWrites::default()
        })
        .await;
    assert!(due(&store, DueBy::Age(LONG)).await.is_empty());
    database
        .execute(
            "UPDATE session_archive_snapshots SET taken_at = now() - interval '2 hours'
             WHERE session_id = '00000000-0000-0000-0000-000000000003'",
        )
        .await;
    assert_eq!(due(&store, DueBy::Age(LONG)).await, [session(3)]);
    assert!(due(&store, DueBy::Age(Duration::MAX)).await.is_empty());
    assert!(due(&store, DueBy::SessionEnd).await.is_empty());
    let elsewhere = store
        .due_snapshots(&[1, 2], DueBy::SessionEnd, None, 100)
        .await
        .unwrap();
    assert_eq!(elsewhere.due, [session(5)]);
}

async fn a_session_is_due_until_its_state_is_the_newest_and_again_when_it_changes(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let every_age = DueBy::Age(Duration::ZERO);
    owner.write(entries(session(1), 1, 3, 0)).await;
    let early = read_state(&store, session(1)).await;
    owner.write(entries(session(1), 4, 5, 0)).await;
    let late = read_state(&store, session(1)).await;
    // Two archivers: the one that read first records last.
    assert!(store.record_snapshot(TOPIC, &late).await.unwrap());
    assert!(due(&store, every_age).await.is_empty());
    assert!(store.record_snapshot(TOPIC, &early).await.unwrap());
    // The older one is to go: it is no state to rebuild from any more.
    assert_eq!(due(&store, every_age).await, [session(1)]);
    // The row has changed since it was read.
    let early = SnapshotRow {
        row_version: String::new(),
        ..early
    };
    assert_eq!(store.snapshots(session(1)).await.unwrap(), [late.clone(), early]);
    let dropped = store.drop_snapshots_before(session(1), late.incarnation, late.next_offset);
    assert_eq!(dropped.await.unwrap(), 1);
    assert!(due(&store, every_age).await.is_empty());
    owner.write(entries(session(1), 6, 6, 0)).await;
    assert_eq!(due(&store, every_age).await, [session(1)]);
}

async fn pages_look_at_every_session_once(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let sessions = (1..=20).map(|number| with_status(number, [1, ENDED][usize::from(number % 5 == 0)]));
    owner
        .write(BatchWrites {
            sessions: sessions.collect(),
            ..BatchWrites::default()
        })
        .await;
    for limit in [1, 3, 20, 100] {
        let (mut met, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = store
                .due_snapshots(&[0, 0, 7], DueBy::SessionEnd, after, limit)
                .await
                .unwrap();
            pages += 1;
            met.extend(page.due);
            after = page.next_after;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(met, [5, 10, 15, 20].map(session), "{limit}");
        assert!(pages <= 20 / limit + 1, "{limit}: {pages} pages");
    }
}

/// Needs two connections: the batch holds one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_began_before_a_state_was_read_makes_the_session_due_when_it_commits() {
    let database = Database::empty().await;
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 3, 0)).await;
    let mut batch = store
        .begin_batch(TOPIC, 0, owner.epoch, owner.next_offset)
        .await
        .unwrap();
    batch.write(&entries(session(1), 4, 5, 0)).await.unwrap();
    // Read while the batch has written and not committed; recorded before it commits as well as after.
    let state = read_state(&store, session(1)).await;
    assert_eq!((state.next_offset, state.last_entry_seq), (1, 3));
    batch.commit(2, 7).await.unwrap();
    assert!(store.record_snapshot(TOPIC, &state).await.unwrap());
    let every_age = DueBy::Age(Duration::ZERO);
    assert_eq!(due(&store, every_age).await, [session(1)]);
    assert_eq!(store.coverage(TOPIC, 0).await.unwrap().coverage.covered_offset, 1);
    take_state(&store, session(1)).await;
    let dropped = store.drop_snapshots_before(session(1), 1, u64::MAX);
    assert_eq!(dropped.await.unwrap(), 1);
    assert!(due(&store, every_age).await.is_empty());
    assert_eq!(store.coverage(TOPIC, 0).await.unwrap().coverage.covered_offset, 2);
}
