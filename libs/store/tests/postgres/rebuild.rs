use wakelog_store::{
    AccessWrite, BatchWrites, Coverage, Error, LifetimeWrite, PartRow, RebuildPlan, RebuildStart,
    RestoredSession, SegmentKind, SessionWrite, Store,
};

use crate::support::Database;
use crate::support::archive::{archived_ranges, hot_entries, object};
use crate::support::rows::{
    ACTIVE, OWNER, Owner, TOPIC, lifetime_write, part, quarantined, session, session_with_entries,
    session_write,
};

on_both_pools!(
    a_rebuild_begins_where_it_is_told_and_only_in_an_empty_store,
    exactly_once_fold_a_restored_session_is_what_the_state_says,
    exactly_once_fold_no_state_comes_after_all_were_loaded,
    exactly_once_fold_what_an_interrupted_rebuild_left_is_cleared,
    archived_is_complete_segments_get_the_kinds_of_what_they_are,
    opaque_absence_nothing_of_an_erased_session_comes_back,
);

fn plan(start_offset: i64) -> RebuildPlan {
    RebuildPlan {
        topic: TOPIC.to_owned(),
        from_archive: true,
        incarnation: 2,
        starts: vec![RebuildStart {
            partition: 0,
            start_offset,
            last_record_crc: None,
        }],
    }
}

/// Session `number` with two lifetimes and entries up to `last`, as of offset 40.
fn restored(number: u128, last: u64, last_checkpoint_seq: u64) -> RestoredSession {
    let session = session(number);
    let lifetime = |generation, base| LifetimeWrite {
        base,
        applied_seq: last - base,
        ..lifetime_write(session, generation)
    };
    RestoredSession {
        session: SessionWrite {
            last_entry_seq: last,
            last_checkpoint_seq,
            generation: 2,
            lifetime_status: ACTIVE,
            ..session_write(session)
        },
        lifetimes: vec![
            (lifetime(1, 0), 1_700_000_000_123),
            (lifetime(2, 1), 1_700_000_001_000),
        ],
        access: vec![AccessWrite {
            session,
            account: "bob".to_owned(),
            role: 1,
        }],
        opened_at_us: 1_700_000_000_000_001,
        incarnation: 2,
        next_offset: 40,
    }
}

async fn begun(database: &Database) -> Store {
    let store = database.store().await;
    store.begin_rebuild(&plan(30)).await.unwrap();
    store
}

async fn a_rebuild_begins_where_it_is_told_and_only_in_an_empty_store(database: Database) {
    let store = database.store().await;
    assert_eq!(store.rebuild().await.unwrap(), None);
    store.begin_rebuild(&plan(30)).await.unwrap();
    let rebuild = store.rebuild().await.unwrap().unwrap();
    assert_eq!(
        (rebuild.starts, rebuild.states_loaded, rebuild.finished),
        (vec![(0, 30)], false, false)
    );
    let claim = store.claim_partition(TOPIC, 0).await.unwrap();
    assert_eq!((claim.next_offset, claim.last_record_crc), (30, None));
    assert_eq!(store.topic_incarnation(TOPIC).await.unwrap(), 2);
    let again = store.begin_rebuild(&plan(30)).await;
    assert!(matches!(again, Err(Error::NotEmpty)), "{again:?}");
    store.mark_states_loaded().await.unwrap();
    store.finish_rebuild().await.unwrap();
    let rebuild = store.rebuild().await.unwrap().unwrap();
    assert!(rebuild.states_loaded && rebuild.finished);
    assert!(store.finish_rebuild().await.is_err(), "it is over");

    let used = Database::empty().await;
    let store = used.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(session_with_entries(session(1), &[b"one"])).await;
    let refused = store.begin_rebuild(&plan(0)).await;
    assert!(matches!(refused, Err(Error::NotEmpty)), "{refused:?}");
    assert_eq!(store.rebuild().await.unwrap(), None, "nothing was written");
}

async fn exactly_once_fold_a_restored_session_is_what_the_state_says(database: Database) {
    let store = begun(&database).await;
    let restored = restored(1, 3, 2);
    store.restore_session(&restored).await.unwrap();
    let columns = store.session_columns(session(1)).await.unwrap().unwrap();
    assert_eq!((columns.pin, columns.partition), (Some(0), 0));
    assert_eq!((columns.last_entry_seq, columns.generation), (3, 2));
    assert_eq!(columns.subscribers, ["bob"]);
    let row = store.visible_session(session(1), OWNER).await.unwrap().unwrap();
    assert_eq!(row.opened_at_us, 1_700_000_000_000_001);
    let bound: Vec<u64> = store
        .lifetimes(session(1), 10)
        .await
        .unwrap()
        .iter()
        .map(|lifetime| lifetime.bound_at_ms)
        .collect();
    assert_eq!(bound, [1_700_000_001_000, 1_700_000_000_123]);
    let offsets = store.state_offsets(&[session(1), session(2)], 2).await.unwrap();
    assert_eq!(offsets.into_iter().collect::<Vec<_>>(), [(session(1), 40)]);
    assert_eq!(store.highest_state_offset(0, 2).await.unwrap(), 40);
    assert_eq!(store.highest_state_offset(0, 1).await.unwrap(), 0);
    // The state is the row's: nothing of what is folded is needed besides.
    let covered = Coverage {
        incarnation: 2,
        covered_offset: 30,
    };
    assert_eq!(store.coverage(TOPIC, 0).await.unwrap(), covered);
    // The same state again, as a rebuild that goes on may bring it.
    store.restore_session(&restored).await.unwrap();
    assert_eq!(database.rows().await, 5);
}

async fn exactly_once_fold_no_state_comes_after_all_were_loaded(database: Database) {
    let store = begun(&database).await;
    store.mark_states_loaded().await.unwrap();
    let late = store.restore_session(&restored(1, 3, 2)).await;
    assert!(matches!(late, Err(Error::Bug(_))), "{late:?}");
    assert_eq!(database.rows().await, 0);
}

async fn exactly_once_fold_what_an_interrupted_rebuild_left_is_cleared(database: Database) {
    let store = begun(&database).await;
    let unfinished = |session| PartRow {
        last: false,
        ..part(session, 4, 0, b"half")
    };
    for number in [1, 2] {
        store.restore_parts(&[unfinished(session(number))]).await.unwrap();
        let segments = [object(session(number), 1, 3)];
        store.restore_segments(session(number), &segments).await.unwrap();
        // A row of the manifest that is there already is no harm.
        store.restore_segments(session(number), &segments).await.unwrap();
    }
    store.restore_session(&restored(2, 3, 2)).await.unwrap();
    store.clear_pieces(session(1)).await.unwrap();
    store.clear_pieces(session(2)).await.unwrap();
    assert_eq!(hot_entries(&store, session(1)).await, Vec::<u64>::new());
    assert_eq!(archived_ranges(&store, session(1)).await, []);
    assert_eq!(hot_entries(&store, session(2)).await, [4]);
    assert_eq!(archived_ranges(&store, session(2)).await, [(1, 3)]);
    let stored = store.stored_sessions(&[session(1), session(2)]).await.unwrap();
    assert_eq!(stored.into_iter().collect::<Vec<_>>(), [session(2)]);
}

async fn archived_is_complete_segments_get_the_kinds_of_what_they_are(database: Database) {
    let store = begun(&database).await;
    let segments = [
        object(session(1), 1, 2),
        object(session(1), 3, 4),
        object(session(1), 4, 6),
    ];
    store.restore_segments(session(1), &segments).await.unwrap();
    store.restore_session(&restored(1, 4, 3)).await.unwrap();
    store.mark_states_loaded().await.unwrap();
    let mut writes = BatchWrites {
        parts: vec![part(session(1), 5, 0, b"five")],
        ..BatchWrites::default()
    };
    writes.sessions.push(SessionWrite {
        last_entry_seq: 6,
        last_checkpoint_seq: 3,
        generation: 2,
        lifetime_status: ACTIVE,
        ..session_write(session(1))
    });
    Owner::claim(&store).await.write(writes).await;
    store.settle_segments(&[session(1)]).await.unwrap();
    let kinds: Vec<SegmentKind> = store
        .segments_page(session(1), None, 10)
        .await
        .unwrap()
        .iter()
        .map(|segment| segment.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            SegmentKind::Superseded,
            SegmentKind::SafetyValve,
            SegmentKind::Retention
        ]
    );
}

async fn opaque_absence_nothing_of_an_erased_session_comes_back(database: Database) {
    let store = begun(&database).await;
    store.restore_erased(session(1), 0).await.unwrap();
    store.restore_erased(session(1), 0).await.unwrap();
    let mut child = restored(2, 3, 2);
    child.session.parent = Some(session(1));
    store.restore_session(&child).await.unwrap();
    store.restore_session(&restored(3, 3, 2)).await.unwrap();
    store.mark_states_loaded().await.unwrap();
    let mut owner = Owner::claim(&store).await;
    owner
        .write(BatchWrites {
            parts: vec![
                part(session(2), 4, 0, b"of the child"),
                part(session(3), 4, 0, b"of another one"),
            ],
            quarantined: vec![quarantined(30, session(2).to_string().as_bytes(), b"raw")],
            ..BatchWrites::default()
        })
        .await;
    store.erase_below_erased().await.unwrap();
    for number in [1, 2] {
        let columns = store.session_columns(session(number)).await.unwrap().unwrap();
        assert!(columns.erased, "session {number}");
        assert_eq!(columns.pin, Some(0));
        assert_eq!(hot_entries(&store, session(number)).await, Vec::<u64>::new());
        let seen = store.visible_session(session(number), OWNER).await.unwrap();
        assert_eq!(seen, None);
    }
    assert_eq!(hot_entries(&store, session(3)).await, [4]);
    let raw = "SELECT count(*) FROM quarantined_records WHERE raw IS NOT NULL";
    assert_eq!(database.number(raw).await, 0);
    let marked = store
        .restored_as_erased(&[session(1), session(2), session(3)])
        .await
        .unwrap();
    assert_eq!(marked.into_iter().collect::<Vec<_>>(), [session(1)]);
    // Late records of the erased session find it erased.
    let mut batch = store.begin_batch(TOPIC, 0, owner.epoch, 31).await.unwrap();
    let loaded = batch.load_sessions(&[session(1)]).await.unwrap();
    assert!(loaded[&session(1)].root_erased && loaded[&session(1)].state.is_empty());
    batch.rollback().await.unwrap();
}

/// Two rebuilds at once would clear each other's pieces.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_once_fold_one_rebuild_at_a_time() {
    let database = Database::empty().await;
    let (first, second) = (database.store().await, database.store().await);
    let lock = first.lock_rebuild().await.unwrap();
    assert!(lock.is_some());
    assert!(second.lock_rebuild().await.unwrap().is_none());
    let other = Database::empty().await.store().await;
    assert!(other.lock_rebuild().await.unwrap().is_some(), "another database");
    drop(lock);
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while second.lock_rebuild().await.unwrap().is_none() {
        assert!(std::time::Instant::now() < give_up, "the lock stays");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
