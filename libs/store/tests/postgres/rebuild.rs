use std::time::{Duration, Instant};

use wakelog_store::{
    AccessWrite, BatchWrites, Coverage, DueBy, Error, LifetimeWrite, PartRow, QuarantinedRecord, RebuildLock,
    RebuildPlan, RebuildStart, RebuildTarget, RestoredSession, SegmentKind, SessionWrite, Store,
    UnknownSession,
};

use crate::support::Database;
use crate::support::archive::{archived_ranges, hot_entries, object};
use crate::support::rows::{
    ACTIVE, OWNER, Owner, TOPIC, lifetime_write, part, quarantined, session, session_with_entries,
    session_write,
};

on_both_pools!(
    a_rebuild_begins_where_it_is_told_and_only_in_an_empty_store,
    exactly_once_fold_whoever_was_there_before_is_fenced,
    exactly_once_fold_states_are_loaded_into_what_nobody_has_folded,
    exactly_once_fold_a_restored_session_is_what_the_state_says,
    exactly_once_fold_no_state_comes_after_all_were_loaded,
    exactly_once_fold_what_an_interrupted_rebuild_left_is_cleared,
    archived_is_complete_segments_get_the_kinds_of_what_they_are,
    opaque_absence_nothing_of_an_erased_session_comes_back,
    no_silent_gap_records_of_unknown_sessions_are_found,
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
    let lifetime = |generation, base, bound_at_ms| LifetimeWrite {
        base,
        bound_at_ms: Some(bound_at_ms),
        applied_seq: last - base,
        ..lifetime_write(session, generation)
    };
    RestoredSession {
        session: SessionWrite {
            last_entry_seq: last,
            last_checkpoint_seq,
            generation: 2,
            lifetime_status: ACTIVE,
            opened_at_us: Some(1_700_000_000_000_001),
            updated_at_us: Some(1_700_000_002_000_000),
            ..session_write(session)
        },
        lifetimes: vec![
            lifetime(1, 0, 1_700_000_000_123),
            lifetime(2, 1, 1_700_000_001_000),
        ],
        access: vec![AccessWrite {
            session,
            account: "bob".to_owned(),
            role: 1,
        }],
        incarnation: 2,
        next_offset: 40,
    }
}

/// A store that is being built, and the lock and the epoch of whoever does that.
struct Begun {
    store: Store,
    _lock: RebuildLock,
    epoch: i64,
}

async fn begun(database: &Database) -> Begun {
    let store = database.unguarded().await;
    let mut lock = store.lock_rebuild().await.unwrap();
    let epoch = lock.begin(&plan(30)).await.unwrap().epoch;
    Begun {
        store,
        _lock: lock,
        epoch,
    }
}

/// Waits until a lock is free: the server may take a moment to see that its holder has gone.
async fn locked(store: &Store) -> RebuildLock {
    store.lock_rebuild().await.unwrap()
}

async fn a_rebuild_begins_where_it_is_told_and_only_in_an_empty_store(database: Database) {
    let store = database.unguarded().await;
    assert_eq!(store.rebuild().await.unwrap(), None);
    let mut lock = locked(&store).await;
    assert_eq!(lock.check_target().await.unwrap(), RebuildTarget::Empty);
    assert_eq!(lock.go_on().await.unwrap(), None);
    let rebuild = lock.begin(&plan(30)).await.unwrap();
    assert_eq!(
        (&rebuild.starts, rebuild.states_loaded, rebuild.finished),
        (&vec![(0, 30)], false, false)
    );
    assert_eq!(store.topic_incarnation(TOPIC).await.unwrap(), 2);
    let again = lock.begin(&plan(30)).await;
    assert!(matches!(again, Err(Error::NotEmpty)), "{again:?}");
    assert_eq!(lock.check_target().await.unwrap(), RebuildTarget::Unfinished);
    let claim = store.claim_for_rebuild(TOPIC, 0, rebuild.epoch).await.unwrap();
    assert_eq!((claim.next_offset, claim.last_record_crc), (30, None));
    store.mark_states_loaded(rebuild.epoch).await.unwrap();
    store.finish_rebuild(rebuild.epoch).await.unwrap();
    let rebuild = store.rebuild().await.unwrap().unwrap();
    assert!(rebuild.states_loaded && rebuild.finished);
    let over = store.finish_rebuild(rebuild.epoch).await;
    assert!(matches!(over, Err(Error::RebuildFenced)), "{over:?}");
    let built = [lock.check_target().await.map(drop), lock.go_on().await.map(drop)];
    for built in built {
        assert!(matches!(built, Err(Error::AlreadyBuilt { .. })), "{built:?}");
    }

    let used = Database::empty().await;
    let store = used.unguarded().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(session_with_entries(session(1), &[b"one"])).await;
    let mut lock = locked(&store).await;
    let refused = [
        lock.begin(&plan(0)).await.map(drop),
        lock.check_target().await.map(drop),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::NotEmpty)), "{refused:?}");
    }
    assert_eq!(store.rebuild().await.unwrap(), None, "nothing was written");
}

/// Invariant exactly-once-fold: whoever was at it before, a persister or another rebuild, changes nothing any more.
async fn exactly_once_fold_whoever_was_there_before_is_fenced(database: Database) {
    let store = database.unguarded().await;
    let persister = store.claim_partition(TOPIC, 0).await.unwrap();
    let mut lock = locked(&store).await;
    let first = lock.begin(&plan(30)).await.unwrap().epoch;
    for next_offset in [0, 30] {
        let fenced = store.begin_batch(TOPIC, 0, persister.epoch, next_offset).await;
        assert!(matches!(fenced, Err(Error::Fenced { .. })), "{fenced:?}");
    }
    let refused = store.claim_partition(TOPIC, 0).await;
    assert!(matches!(refused, Err(Error::BeingBuilt)), "{refused:?}");
    let elsewhere = store.claim_partition(TOPIC, 7).await;
    assert!(matches!(elsewhere, Err(Error::BeingBuilt)), "{elsewhere:?}");
    // No epoch of a database that was lost comes near the ones that count on from here.
    let claim = store.claim_for_rebuild(TOPIC, 0, first).await.unwrap();
    assert!(claim.epoch > 1_700_000_000_000, "{}", claim.epoch);

    let second = lock.go_on().await.unwrap().unwrap().epoch;
    assert!(second > first);
    let late = [
        store.clear_pieces(first, session(1)).await,
        store
            .restore_parts(first, &[part(session(1), 4, 0, b"half")])
            .await,
        store
            .restore_segments(first, session(1), &[object(session(1), 1, 3)])
            .await,
        store.restore_session(first, &restored(1, 3, 2)).await,
        store.restore_erased(first, session(1), 0).await,
        store.mark_states_loaded(first).await,
        store.finish_rebuild(first).await,
        store.claim_for_rebuild(TOPIC, 0, first).await.map(drop),
    ];
    for late in late {
        assert!(matches!(late, Err(Error::RebuildFenced)), "{late:?}");
    }
    assert_eq!(database.rows().await, 0);
    store.mark_states_loaded(second).await.unwrap();
    let unfinished = store.claim_partition(TOPIC, 0).await;
    assert!(matches!(unfinished, Err(Error::BeingBuilt)), "{unfinished:?}");
    store.finish_rebuild(second).await.unwrap();
    store.claim_partition(TOPIC, 0).await.unwrap();
}

/// A batch that was folded between the look at the store and the rebuild's beginning.
async fn exactly_once_fold_states_are_loaded_into_what_nobody_has_folded(database: Database) {
    let Begun { store, epoch, .. } = begun(&database).await;
    Owner::claim_for_rebuild(&store, epoch)
        .await
        .write(BatchWrites::default())
        .await;
    let marked = store.mark_states_loaded(epoch).await;
    assert!(matches!(marked, Err(Error::Bug(_))), "{marked:?}");
}

async fn exactly_once_fold_a_restored_session_is_what_the_state_says(database: Database) {
    let Begun { store, epoch, .. } = begun(&database).await;
    let restored = restored(1, 3, 2);
    store.restore_session(epoch, &restored).await.unwrap();
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
    assert_eq!(store.coverage(TOPIC, 0).await.unwrap().coverage, covered);
    assert_eq!(row.updated_at_ms, 1_700_000_002_000);
    // What is folded next may be as old as the state: the next one is due as soon as something changes.
    let due_by = DueBy::Age(Duration::from_secs(3600));
    assert!(
        store
            .due_snapshots(&[0], due_by, None, 10)
            .await
            .unwrap()
            .due
            .is_empty()
    );
    let touch = "UPDATE agent_sessions SET updated_at = updated_at";
    database.execute(touch).await;
    assert_eq!(
        store.due_snapshots(&[0], due_by, None, 10).await.unwrap().due,
        [session(1)]
    );
    // The same state again, as a rebuild that goes on may bring it.
    store.restore_session(epoch, &restored).await.unwrap();
    assert_eq!(database.rows().await, 5);
}

async fn exactly_once_fold_no_state_comes_after_all_were_loaded(database: Database) {
    let Begun { store, epoch, .. } = begun(&database).await;
    store.mark_states_loaded(epoch).await.unwrap();
    let late = store.restore_session(epoch, &restored(1, 3, 2)).await;
    assert!(matches!(late, Err(Error::RebuildFenced)), "{late:?}");
    assert_eq!(database.rows().await, 0);
}

async fn exactly_once_fold_what_an_interrupted_rebuild_left_is_cleared(database: Database) {
    let Begun { store, epoch, .. } = begun(&database).await;
    let unfinished = |session| PartRow {
        last: false,
        ..part(session, 4, 0, b"half")
    };
    for number in [1, 2] {
        store
            .restore_parts(epoch, &[unfinished(session(number))])
            .await
            .unwrap();
        let segments = [object(session(number), 1, 3)];
        store
            .restore_segments(epoch, session(number), &segments)
            .await
            .unwrap();
        // A row of the manifest that is there already is no harm.
        store
            .restore_segments(epoch, session(number), &segments)
            .await
            .unwrap();
    }
    store.restore_session(epoch, &restored(2, 3, 2)).await.unwrap();
    store.clear_pieces(epoch, session(1)).await.unwrap();
    store.clear_pieces(epoch, session(2)).await.unwrap();
    assert_eq!(hot_entries(&store, session(1)).await, Vec::<u64>::new());
    assert_eq!(archived_ranges(&store, session(1)).await, []);
    assert_eq!(hot_entries(&store, session(2)).await, [4]);
    assert_eq!(archived_ranges(&store, session(2)).await, [(1, 3)]);
    let stored = store.stored_sessions(&[session(1), session(2)]).await.unwrap();
    assert_eq!(stored.into_iter().collect::<Vec<_>>(), [(session(2), 0)]);
}

async fn archived_is_complete_segments_get_the_kinds_of_what_they_are(database: Database) {
    let Begun { store, epoch, .. } = begun(&database).await;
    let segments = [
        object(session(1), 1, 2),
        object(session(1), 3, 4),
        object(session(1), 3, 3),
        object(session(1), 4, 6),
        object(session(1), 6, 6),
    ];
    store
        .restore_segments(epoch, session(1), &segments)
        .await
        .unwrap();
    store.restore_session(epoch, &restored(1, 4, 3)).await.unwrap();
    store.mark_states_loaded(epoch).await.unwrap();
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
    Owner::claim_for_rebuild(&store, epoch).await.write(writes).await;
    store.settle_segments(epoch, &[session(1)]).await.unwrap();
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
            // Within the next one.
            SegmentKind::Retention,
            SegmentKind::SafetyValve,
            // The hot tail has a row of it.
            SegmentKind::Retention,
            // Within that copy, and so needed itself.
            SegmentKind::SafetyValve
        ]
    );
}

async fn opaque_absence_nothing_of_an_erased_session_comes_back(database: Database) {
    let Begun { store, epoch, .. } = begun(&database).await;
    store.restore_erased(epoch, session(1), 0).await.unwrap();
    store.restore_erased(epoch, session(1), 0).await.unwrap();
    let mut child = restored(2, 3, 2);
    child.session.parent = Some(session(1));
    store.restore_session(epoch, &child).await.unwrap();
    store.restore_session(epoch, &restored(3, 3, 2)).await.unwrap();
    store.mark_states_loaded(epoch).await.unwrap();
    let mut owner = Owner::claim_for_rebuild(&store, epoch).await;
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

/// What is left of sessions that nobody can open any more is found by the records that were put aside.
async fn no_silent_gap_records_of_unknown_sessions_are_found(database: Database) {
    let Begun { store, epoch, .. } = begun(&database).await;
    store.restore_session(epoch, &restored(1, 3, 2)).await.unwrap();
    store.mark_states_loaded(epoch).await.unwrap();
    let mut owner = Owner::claim_for_rebuild(&store, epoch).await;
    let foreign = |offset, key: &str| quarantined(offset, key.as_bytes(), b"raw");
    let aside = |offset, key: &str| QuarantinedRecord {
        reason: "unbound",
        ..foreign(offset, key)
    };
    let (known, lost, later) = (
        session(1).to_string(),
        session(2).to_string(),
        session(3).to_string(),
    );
    owner
        .write(BatchWrites {
            quarantined: vec![
                aside(30, &known),
                aside(31, &lost),
                aside(33, &lost),
                aside(34, "no session"),
                aside(35, &later),
                aside(29, &later),
                // Whoever wrote this named some session, and wrote nothing of one.
                foreign(36, &session(4).to_string()),
            ],
            ..BatchWrites::default()
        })
        .await;
    let found = |number, first_offset, last_offset| UnknownSession {
        session: session(number),
        first_offset,
        last_offset,
    };
    let all = store.unknown_sessions(TOPIC, 0, 30, 10).await.unwrap();
    assert_eq!(all, (vec![found(2, 31, 33), found(3, 35, 35)], 2));
    let one = store.unknown_sessions(TOPIC, 0, 30, 1).await.unwrap();
    assert_eq!(one, (vec![found(2, 31, 33)], 2));
    assert_eq!(store.unknown_sessions(TOPIC, 1, 0, 10).await.unwrap().1, 0);
}

/// Two rebuilds at once would clear each other's pieces.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_once_fold_one_rebuild_at_a_time() {
    let database = Database::empty().await;
    let (first, second) = (database.unguarded().await, database.unguarded().await);
    let lock = locked(&first).await;
    let refused = second.lock_rebuild().await;
    assert!(matches!(refused, Err(Error::RebuildRunning)), "{refused:?}");
    locked(&Database::empty().await.unguarded().await).await;
    drop(lock);
    locked(&second).await;
}

/// Invariant exactly-once-fold: a half-built store looks like a whole one, so nobody uses it, and none is begun under somebody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_once_fold_nobody_uses_a_store_that_is_being_built() {
    let database = Database::empty().await;
    let (builder, service) = (database.unguarded().await, database.store().await);
    let refused = builder.lock_rebuild().await;
    assert!(
        matches!(refused, Err(Error::InUse { connections: 1.. })),
        "{refused:?}"
    );
    // A service that has no connection at the moment stands in nobody's way, and gets none.
    database.end_connections().await;
    let builder = database.unguarded().await;
    let mut lock = locked(&builder).await;
    let refuses = async |service: &Store| {
        let acquired = service.progress_of_topic(TOPIC).await;
        assert!(matches!(acquired, Err(Error::BeingBuilt)), "{acquired:?}");
        let connected = Store::connect(database.options()).await;
        assert!(matches!(connected, Err(Error::BeingBuilt)), "{connected:?}");
    };
    refuses(&service).await;
    let begun = service.begin_batch(TOPIC, 0, 1, 0).await;
    assert!(matches!(begun, Err(Error::BeingBuilt)), "{begun:?}");
    let epoch = lock.begin(&plan(0)).await.unwrap().epoch;
    refuses(&service).await;
    // The lock is lost, the rebuild is not finished.
    drop(lock);
    refuses(&service).await;
    let mut lock = locked(&builder).await;
    assert_eq!(lock.go_on().await.unwrap().unwrap().epoch, epoch + 1);
    builder.mark_states_loaded(epoch + 1).await.unwrap();
    builder.finish_rebuild(epoch + 1).await.unwrap();
    drop(lock);
    let give_up = Instant::now() + Duration::from_secs(30);
    while service.progress_of_topic(TOPIC).await.is_err() {
        assert!(Instant::now() < give_up, "the service stays out");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
