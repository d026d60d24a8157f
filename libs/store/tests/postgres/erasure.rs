use wakelog_store::{AccessWrite, BatchWrites, SessionWrite};

use crate::support::Database;
use crate::support::rows::{
    OWNER, Owner, TOPIC, lifetime_write, part, quarantined, session, session_with_entries, session_write,
};

on_both_pools!(
    erasing_reaches_sub_sessions_and_keeps_tombstones,
    an_erased_session_stays_erased,
    parents_in_a_circle_are_erased_and_end,
    opaque_absence_of_an_erased_session_for_all_but_its_owner,
);

fn child(number: u128, parent: u128) -> SessionWrite {
    SessionWrite {
        parent: Some(session(parent)),
        ..session_write(session(number))
    }
}

async fn erasing_reaches_sub_sessions_and_keeps_tombstones(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(session_with_entries(session(1), &[b"root"])).await;
    owner
        .write(BatchWrites {
            sessions: vec![child(2, 1), child(3, 2), session_write(session(4))],
            parts: vec![
                part(session(3), 1, 0, b"grandchild"),
                part(session(4), 1, 0, b"stranger"),
            ],
            quarantined: vec![
                quarantined(1, session(3).to_string().as_bytes(), b"raw"),
                quarantined(2, session(4).to_string().as_bytes(), b"raw"),
            ],
            ..BatchWrites::default()
        })
        .await;
    // What comes in the batch that erases goes with it.
    owner
        .write(BatchWrites {
            sessions: vec![SessionWrite {
                erased: true,
                state: b"tombstone".to_vec(),
                ..session_write(session(1))
            }],
            parts: vec![part(session(2), 1, 0, b"child")],
            erased: vec![session(1)],
            ..BatchWrites::default()
        })
        .await;

    for gone in [1, 2, 3] {
        assert!(
            store
                .visible_session(session(gone), OWNER)
                .await
                .unwrap()
                .is_none(),
            "{gone}"
        );
        assert!(
            store
                .parts_page(session(gone), None, 9, 1)
                .await
                .unwrap()
                .is_empty(),
            "{gone}"
        );
        assert_eq!(store.pin(session(gone)).await.unwrap(), Some(0));
    }
    assert!(store.visible_session(session(4), OWNER).await.unwrap().is_some());
    assert_eq!(store.parts_page(session(4), None, 9, 1).await.unwrap().len(), 1);
    assert_eq!(
        store.session_state(session(1)).await.unwrap().unwrap(),
        b"tombstone".as_slice()
    );
    assert_eq!(store.lifetimes(session(1), 10).await.unwrap().len(), 1);
    let cursors = store
        .lifetime_cursors(TOPIC, &[lifetime_write(session(1), 1).lifetime_id])
        .await
        .unwrap();
    assert!(cursors[0].erased);
    assert_eq!(
        database.number("SELECT count(*) FROM quarantined_records").await,
        2
    );
    assert_eq!(
        database
            .number("SELECT record_offset FROM quarantined_records WHERE raw IS NOT NULL")
            .await,
        2
    );

    let mut batch = store
        .begin_batch(TOPIC, 0, owner.epoch, owner.next_offset)
        .await
        .unwrap();
    let loaded = batch
        .load_sessions(&[session(1), session(2), session(3), session(4)])
        .await
        .unwrap();
    for (number, root_erased) in [(1, true), (2, true), (3, true), (4, false)] {
        assert_eq!(loaded[&session(number)].root_erased, root_erased, "{number}");
    }
    batch.rollback().await.unwrap();
}

async fn an_erased_session_stays_erased(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(session_with_entries(session(1), &[b"one"])).await;
    owner
        .write(BatchWrites {
            erased: vec![session(1), session(9)],
            ..BatchWrites::default()
        })
        .await;
    owner
        .write(BatchWrites {
            sessions: vec![session_write(session(1))],
            ..BatchWrites::default()
        })
        .await;
    assert!(store.visible_session(session(1), OWNER).await.unwrap().is_none());
}

async fn parents_in_a_circle_are_erased_and_end(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner
        .write(BatchWrites {
            sessions: vec![child(1, 2), child(2, 1), child(3, 3)],
            ..BatchWrites::default()
        })
        .await;
    owner
        .write(BatchWrites {
            erased: vec![session(1), session(3)],
            ..BatchWrites::default()
        })
        .await;
    for gone in [1, 2, 3] {
        assert!(
            store
                .visible_session(session(gone), OWNER)
                .await
                .unwrap()
                .is_none(),
            "{gone}"
        );
    }
}

async fn opaque_absence_of_an_erased_session_for_all_but_its_owner(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let reader = AccessWrite {
        session: session(1),
        account: "reader".to_owned(),
        role: 1,
    };
    owner
        .write(BatchWrites {
            sessions: vec![session_write(session(1))],
            access: vec![reader],
            ..BatchWrites::default()
        })
        .await;
    let standing = async |account| {
        let standing = store.erasure_standing(session(1), account).await.unwrap();
        standing.map(|standing| (standing.is_owner, standing.erased))
    };
    assert_eq!(standing(OWNER).await, Some((true, false)));
    assert_eq!(standing("reader").await, Some((false, false)));
    assert_eq!(standing("stranger").await, None);
    assert!(store.erasure_standing(session(2), OWNER).await.unwrap().is_none());
    owner
        .write(BatchWrites {
            erased: vec![session(1)],
            ..BatchWrites::default()
        })
        .await;
    assert_eq!(standing(OWNER).await, Some((true, true)));
    assert_eq!(standing("reader").await, None);
    assert_eq!(standing("stranger").await, None);
}
