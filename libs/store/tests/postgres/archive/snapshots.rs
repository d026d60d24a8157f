use std::collections::BTreeMap;

use wakelog_store::{
    AccessWrite, BatchWrites, LifetimeWrite, PartRow, SessionWrite, SnapshotRow, SnapshotSource,
    UnfinishedEntry,
};

use crate::support::Database;
use crate::support::archive::entries;
use crate::support::rows::{OWNER, Owner, TOPIC, lifetime_write, part, session, session_write};

on_both_pools!(
    a_source_is_the_whole_session_of_one_moment,
    a_source_tells_the_unfinished_entry_and_when_it_was_replaced,
    a_row_version_changes_with_every_batch_of_the_session_and_with_nothing_else,
    states_are_listed_and_the_newest_is_never_dropped,
    an_erased_session_records_no_state,
    a_state_of_what_was_lost_is_not_recorded,
    a_source_on_a_partition_that_nobody_folds_is_an_error,
);

fn snapshot(source: &SnapshotSource) -> SnapshotRow {
    SnapshotRow {
        session: source.session,
        incarnation: source.incarnation,
        next_offset: source.next_offset,
        last_entry_seq: source.last_entry_seq,
        row_version: source.row_version.clone(),
    }
}

async fn a_source_is_the_whole_session_of_one_moment(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    assert_eq!(store.snapshot_source(TOPIC, session(1)).await.unwrap(), None);
    let labels = BTreeMap::from([("project".to_owned(), "wake".to_owned())]);
    let mut writes = entries(session(1), 1, 3, 2);
    writes.sessions[0] = SessionWrite {
        labels: labels.clone(),
        parent: Some(session(7)),
        subpath: "a/b".to_owned(),
        state: b"the state".to_vec(),
        generation: 2,
        ..writes.sessions[0].clone()
    };
    writes.lifetimes.push(LifetimeWrite {
        base: 2,
        ..lifetime_write(session(1), 2)
    });
    for (account, role) in [("bob", 1), ("amy", 2)] {
        writes.access.push(AccessWrite {
            session: session(1),
            account: account.to_owned(),
            role,
        });
    }
    owner.write(writes).await;
    owner.write(BatchWrites::default()).await;

    let source = store.snapshot_source(TOPIC, session(1)).await.unwrap().unwrap();
    assert_eq!((source.session, source.partition), (session(1), 0));
    assert_eq!((source.incarnation, source.next_offset), (1, 2));
    assert_eq!(source.state, b"the state".as_slice());
    assert_eq!(
        (source.owner.as_str(), &source.labels, source.parent),
        (OWNER, &labels, Some(session(7)))
    );
    assert_eq!((source.subpath.as_str(), source.erased), ("a/b", false));
    assert_eq!((source.last_entry_seq, source.last_checkpoint_seq), (3, 2));
    assert_eq!(source.access, [("amy".to_owned(), 2), ("bob".to_owned(), 1)]);
    let mut lifetimes = store.lifetimes(session(1), 10).await.unwrap();
    lifetimes.reverse();
    assert_eq!(source.lifetimes, lifetimes);
    assert_eq!(lifetimes.len(), 2);
    let visible = store.visible_session(session(1), OWNER).await.unwrap();
    assert_eq!(source.opened_at_us, visible.unwrap().opened_at_us);
    assert_eq!(source.unfinished, None);
    assert_eq!(database.open_transactions().await, 0);

    database
        .execute("INSERT INTO topic_incarnations VALUES ('wakelog.transcript', 3)")
        .await;
    let source = store.snapshot_source(TOPIC, session(1)).await.unwrap().unwrap();
    assert_eq!(source.incarnation, 3);
    assert_eq!(store.topic_incarnation(TOPIC).await.unwrap(), 3);
    assert_eq!(store.topic_incarnation("another").await.unwrap(), 1);
}

async fn a_source_tells_the_unfinished_entry_and_when_it_was_replaced(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let unfinished = |number, generation| PartRow {
        last: false,
        generation,
        ..part(session(1), 4, number, b"part")
    };
    let mut writes = entries(session(1), 1, 3, 0);
    writes.parts.extend([unfinished(0, 1), unfinished(1, 1)]);
    owner.write(writes).await;
    let source = store.snapshot_source(TOPIC, session(1)).await.unwrap().unwrap();
    let expected = UnfinishedEntry {
        entry_seq: 4,
        generation: 1,
        parts: 2,
        plain_bytes: 8,
    };
    assert_eq!(source.unfinished, Some(expected));

    // A bind discards them and the next writer starts the same entry: its parts say so by their generation.
    owner
        .write(BatchWrites {
            sessions: vec![SessionWrite {
                last_entry_seq: 3,
                generation: 2,
                ..session_write(session(1))
            }],
            lifetimes: vec![lifetime_write(session(1), 2)],
            discarded_entries: vec![(session(1), 4)],
            parts: vec![unfinished(0, 2), unfinished(1, 2), unfinished(2, 2)],
            ..BatchWrites::default()
        })
        .await;
    let read = store
        .parts_page(session(1), Some((3, u32::MAX)), 4, usize::MAX)
        .await
        .unwrap();
    assert!(read.iter().all(|part| part.generation == 2));
    let source = store.snapshot_source(TOPIC, session(1)).await.unwrap().unwrap();
    let expected = UnfinishedEntry {
        entry_seq: 4,
        generation: 2,
        parts: 3,
        plain_bytes: 12,
    };
    assert_eq!(source.unfinished, Some(expected));
}

async fn a_row_version_changes_with_every_batch_of_the_session_and_with_nothing_else(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let version = async || {
        let source = store.snapshot_source(TOPIC, session(1)).await.unwrap();
        source.unwrap().row_version
    };
    owner.write(entries(session(1), 1, 3, 3)).await;
    let first = version().await;
    owner.write(entries(session(2), 1, 3, 3)).await;
    owner.write(BatchWrites::default()).await;
    // A flush locks the row and does not change it.
    let object = crate::support::archive::object(session(1), 1, 2);
    crate::support::archive::stage_and_flush(&store, session(1), object).await;
    database.execute("VACUUM FREEZE agent_sessions").await;
    assert_eq!(version().await, first);
    let unchanged = BatchWrites {
        parts: Vec::new(),
        lifetimes: Vec::new(),
        ..entries(session(1), 1, 3, 3)
    };
    owner.write(unchanged).await;
    let second = version().await;
    assert_ne!(second, first);
    owner
        .write(BatchWrites {
            sessions: vec![session_write(session(5))],
            erased: vec![session(1)],
            ..BatchWrites::default()
        })
        .await;
    assert_ne!(version().await, second);
}

async fn states_are_listed_and_the_newest_is_never_dropped(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 3, 0)).await;
    // Other sessions' records.
    for _ in 0..9 {
        owner.write(BatchWrites::default()).await;
    }
    let source = store.snapshot_source(TOPIC, session(1)).await.unwrap().unwrap();
    let of = |incarnation, next_offset| SnapshotRow {
        incarnation,
        next_offset,
        ..snapshot(&source)
    };
    for row in [of(1, 5), of(1, 9), of(2, 3), of(1, 7)] {
        assert!(store.record_snapshot(TOPIC, &row).await.unwrap());
    }
    let of_another_version = SnapshotRow {
        row_version: "another".to_owned(),
        last_entry_seq: 4,
        ..of(1, 9)
    };
    assert!(store.record_snapshot(TOPIC, &of_another_version).await.unwrap());
    // What is not the row's version may come to be another one's.
    let again = SnapshotRow {
        row_version: String::new(),
        ..of_another_version
    };
    assert_eq!(
        store.snapshots(session(1)).await.unwrap(),
        [of(2, 3), again.clone(), of(1, 7), of(1, 5)]
    );
    let dropped = store.drop_snapshots_before(session(1), 1, 9).await.unwrap();
    assert_eq!(dropped, 2);
    assert_eq!(store.snapshots(session(1)).await.unwrap(), [of(2, 3), again]);
    let dropped = store
        .drop_snapshots_before(session(1), 9, u64::MAX)
        .await
        .unwrap();
    assert_eq!(dropped, 1);
    assert_eq!(store.snapshots(session(1)).await.unwrap(), [of(2, 3)]);
}

async fn an_erased_session_records_no_state(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 3, 0)).await;
    let source = store.snapshot_source(TOPIC, session(1)).await.unwrap().unwrap();
    owner
        .write(BatchWrites {
            erased: vec![session(1)],
            ..BatchWrites::default()
        })
        .await;
    assert!(!store.record_snapshot(TOPIC, &snapshot(&source)).await.unwrap());
    assert!(store.snapshots(session(1)).await.unwrap().is_empty());
    let source = store.snapshot_source(TOPIC, session(1)).await.unwrap().unwrap();
    assert!(source.erased);
}

async fn a_source_on_a_partition_that_nobody_folds_is_an_error(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 3, 0)).await;
    let error = store
        .snapshot_source("another topic", session(1))
        .await
        .unwrap_err();
    assert!(matches!(error, wakelog_store::Error::Bug(_)), "{error}");
    assert_eq!(database.open_transactions().await, 0);
}

/// Invariant archived-is-complete: a database that lost commits since the state was read has nothing that the state is of.
async fn a_state_of_what_was_lost_is_not_recorded(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 3, 0)).await;
    let source = store.snapshot_source(TOPIC, session(1)).await.unwrap().unwrap();
    let lost = SnapshotRow {
        next_offset: source.next_offset + 1,
        last_entry_seq: source.last_entry_seq + 1,
        ..snapshot(&source)
    };
    assert!(!store.record_snapshot(TOPIC, &lost).await.unwrap());
    assert!(
        !store
            .record_snapshot("another topic", &snapshot(&source))
            .await
            .unwrap()
    );
    assert!(store.snapshots(session(1)).await.unwrap().is_empty());
    // Folded again.
    owner.write(entries(session(1), 4, 4, 0)).await;
    assert!(store.record_snapshot(TOPIC, &lost).await.unwrap());
}
