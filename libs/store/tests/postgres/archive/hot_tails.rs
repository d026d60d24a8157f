use uuid::Uuid;
use wakelog_model::SessionId;
use wakelog_store::{BatchWrites, HotTail, PartRow, SessionWrite, Store};

use crate::support::Database;
use crate::support::archive::{entries, object, stage_and_flush};
use crate::support::rows::{Owner, part, session, session_write};

on_both_pools!(
    a_hot_tail_says_what_is_superseded_and_how_long_the_deltas_are,
    a_sweep_meets_every_session_of_its_partitions_once,
    runs_end_at_holes_and_hold_complete_entries_only,
    a_valve_leaves_no_more_than_it_may_keep,
    a_valve_cuts_up_to_the_first_hole,
);

/// Entries of these lengths, from 1 on.
fn of_lengths(lengths: &[u32], last_checkpoint_seq: u64) -> BatchWrites {
    let mut writes = entries(session(1), 1, lengths.len() as u64, last_checkpoint_seq);
    for (part, length) in writes.parts.iter_mut().zip(lengths) {
        part.plain_length = *length;
    }
    writes
}

async fn tail(store: &Store) -> HotTail {
    let tails = store.hot_tails(&[session(1), session(99)]).await.unwrap();
    assert_eq!(tails.len(), 1);
    tails[0].clone()
}

async fn a_hot_tail_says_what_is_superseded_and_how_long_the_deltas_are(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let mut writes = of_lengths(&[1, 10, 100, 1_000, 10_000], 3);
    let unfinished = PartRow {
        last: false,
        ..part(session(1), 6, 0, b"unfinished")
    };
    let second_part = PartRow {
        plain_length: 7,
        ..part(session(1), 5, 1, b"second part")
    };
    writes.parts.extend([unfinished, second_part]);
    owner.write(writes).await;
    owner
        .write(BatchWrites {
            sessions: vec![session_write(session(2))],
            ..BatchWrites::default()
        })
        .await;
    let full = HotTail {
        session: session(1),
        partition: 0,
        erased: false,
        last_entry_seq: 5,
        last_checkpoint_seq: 3,
        superseded_rows: true,
        delta_bytes: 11_007,
    };
    assert_eq!(tail(&store).await, full);
    stage_and_flush(&store, session(1), object(session(1), 1, 1)).await;
    assert_eq!(tail(&store).await, full);
    stage_and_flush(&store, session(1), object(session(1), 2, 2)).await;
    let pruned = HotTail {
        superseded_rows: false,
        ..full.clone()
    };
    assert_eq!(tail(&store).await, pruned);
    stage_and_flush(&store, session(1), object(session(1), 4, 4)).await;
    let cut = HotTail {
        delta_bytes: 10_007,
        ..pruned
    };
    assert_eq!(tail(&store).await, cut);
    owner
        .write(BatchWrites {
            erased: vec![session(1)],
            ..BatchWrites::default()
        })
        .await;
    let erased = HotTail {
        erased: true,
        delta_bytes: 0,
        ..cut
    };
    assert_eq!(tail(&store).await, erased);
    let empty = store.hot_tails(&[session(2)]).await.unwrap();
    assert_eq!(
        (
            empty[0].superseded_rows,
            empty[0].delta_bytes,
            empty[0].last_entry_seq
        ),
        (false, 0, 0)
    );
    assert!(store.hot_tails(&[]).await.unwrap().is_empty());
}

async fn a_sweep_meets_every_session_of_its_partitions_once(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let highest = SessionId(Uuid::max());
    let mut sessions: Vec<SessionWrite> = (1..=30)
        .map(|number| SessionWrite {
            partition: (number % 3) as i32,
            ..session_write(session(number))
        })
        .collect();
    sessions.push(session_write(highest));
    owner
        .write(BatchWrites {
            sessions,
            erased: vec![session(3)],
            ..BatchWrites::default()
        })
        .await;
    let expected: Vec<SessionId> = (1..=30)
        .filter(|number| number % 3 != 1)
        .map(session)
        .chain([highest])
        .collect();
    for limit in [1, 4, 21, 100] {
        let (mut met, mut after) = (Vec::new(), None);
        loop {
            let page = store
                .sessions_of_partitions(&[2, 0, 2], after, limit)
                .await
                .unwrap();
            assert!(page.len() <= limit as usize);
            let Some(last) = page.last() else { break };
            after = Some(*last);
            met.extend(page);
        }
        assert_eq!(met, expected, "{limit}");
    }
    assert!(
        store
            .sessions_of_partitions(&[], None, 10)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn runs_end_at_holes_and_hold_complete_entries_only(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let mut writes = entries(session(1), 1, 12, 0);
    writes.parts.push(part(session(1), 5, 1, b"second part"));
    writes.parts.push(part(session(1), 13, 0, b"unfinished"));
    owner.write(writes).await;
    let runs = async |first, last, limit| store.hot_runs(session(1), first, last, limit).await.unwrap();
    assert_eq!(runs(1, u64::MAX, 10).await, [(1, 12)]);
    for (min, max) in [(3, 4), (9, 9)] {
        stage_and_flush(&store, session(1), object(session(1), min, max)).await;
    }
    assert_eq!(runs(0, u64::MAX, 10).await, [(1, 2), (5, 8), (10, 12)]);
    assert_eq!(runs(2, 10, 10).await, [(2, 2), (5, 8), (10, 10)]);
    assert_eq!(runs(2, 10, 2).await, [(2, 2), (5, 8)]);
    assert!(runs(9, 9, 10).await.is_empty());
    assert!(runs(13, 20, 10).await.is_empty());
    assert!(store.hot_runs(session(2), 1, 9, 9).await.unwrap().is_empty());
}

async fn a_valve_leaves_no_more_than_it_may_keep(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let mut writes = of_lengths(&[500, 100, 10, 20, 30, 40], 2);
    let unfinished = PartRow {
        last: false,
        plain_length: 5_000,
        ..part(session(1), 7, 0, b"unfinished")
    };
    writes.parts.push(unfinished);
    owner.write(writes).await;
    let cut = async |keep| store.valve_cut(session(1), keep).await.unwrap();
    assert_eq!(cut(u64::MAX).await, None);
    assert_eq!(cut(100).await, None);
    assert_eq!(cut(99).await, Some((3, 3)));
    assert_eq!(cut(90).await, Some((3, 3)));
    assert_eq!(cut(89).await, Some((3, 4)));
    assert_eq!(cut(70).await, Some((3, 4)));
    assert_eq!(cut(40).await, Some((3, 5)));
    // The last entry stays, however long it is.
    assert_eq!(cut(39).await, Some((3, 5)));
    assert_eq!(cut(0).await, Some((3, 5)));
    let flushed = object(session(1), 3, 5);
    stage_and_flush(&store, session(1), flushed).await;
    assert_eq!(cut(0).await, None);
    assert_eq!(store.valve_cut(session(2), 0).await.unwrap(), None);
    owner
        .write(BatchWrites {
            erased: vec![session(1)],
            ..BatchWrites::default()
        })
        .await;
    assert_eq!(cut(0).await, None);
}

async fn a_valve_cuts_up_to_the_first_hole(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(of_lengths(&[10; 9], 0)).await;
    stage_and_flush(&store, session(1), object(session(1), 3, 4)).await;
    let cut = async |keep| store.valve_cut(session(1), keep).await.unwrap();
    assert_eq!(cut(20).await, Some((1, 2)));
    stage_and_flush(&store, session(1), object(session(1), 1, 2)).await;
    assert_eq!(cut(20).await, Some((5, 7)));
}
