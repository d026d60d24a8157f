use std::time::Duration;

use wakelog_model::{LifetimeId, SessionId};
use wakelog_store::{BatchWrites, Error, LifetimeWrite, SessionWrite, Store};

use crate::support::Database;
use crate::support::rows::{ACTIVE, Owner, TOPIC, lifetime_write, nonce, session, session_write};

on_both_pools!(
    lifetimes_are_found_by_request_by_id_and_by_nonce,
    cursors_say_what_fences_a_lifetime,
    a_thousand_cursors_and_more_are_read,
    a_pin_is_set_once,
    an_announced_generation_only_ever_rises,
);

/// Three lifetimes, the last one current; the first and the last have the same writer.
async fn three_lifetimes(store: &Store, session: SessionId) -> Owner<'_> {
    let mut owner = Owner::claim(store).await;
    let lifetimes = (1..=3)
        .map(|generation| LifetimeWrite {
            base: generation * 10,
            body_start: generation,
            nonce: [None, Some(nonce(1)), Some(nonce(2)), Some(nonce(1))][generation as usize],
            applied_seq: generation + 100,
            ..lifetime_write(session, generation)
        })
        .collect();
    let sessions = vec![SessionWrite {
        generation: 3,
        lifetime_status: ACTIVE,
        ..session_write(session)
    }];
    owner
        .write(BatchWrites {
            sessions,
            lifetimes,
            ..BatchWrites::default()
        })
        .await;
    owner
}

async fn lifetimes_are_found_by_request_by_id_and_by_nonce(database: Database) {
    let store = database.store().await;
    three_lifetimes(&store, session(1)).await;
    let newest_first: Vec<u64> = store
        .lifetimes(session(1), 10)
        .await
        .unwrap()
        .iter()
        .map(|lifetime| lifetime.generation)
        .collect();
    assert_eq!(newest_first, [3, 2, 1]);
    assert_eq!(store.lifetimes(session(1), 2).await.unwrap().len(), 2);
    assert!(store.lifetimes(session(2), 10).await.unwrap().is_empty());

    let second = store
        .lifetime_by_request(session(1), "request-2")
        .await
        .unwrap()
        .unwrap();
    assert_eq!((second.generation, second.current_generation), (2, 3));
    assert_eq!(
        (second.base, second.body_start, second.applied_seq, second.status),
        (20, 2, 102, ACTIVE)
    );
    assert_eq!(second.nonce, Some(nonce(2)));
    assert!(second.bound_at_ms > 1_600_000_000_000, "{}", second.bound_at_ms);
    assert_eq!(
        store
            .lifetime_by_id(session(1), second.lifetime_id)
            .await
            .unwrap(),
        Some(second.clone())
    );
    assert_eq!(
        store.lifetime_by_nonce(session(1), nonce(2)).await.unwrap(),
        Some(second.clone())
    );
    let newest = store
        .lifetime_by_nonce(session(1), nonce(1))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(newest.generation, 3);

    assert_eq!(
        store.lifetime_by_request(session(1), "request-9").await.unwrap(),
        None
    );
    assert_eq!(store.lifetime_by_nonce(session(1), nonce(9)).await.unwrap(), None);
    assert_eq!(
        store
            .lifetime_by_id(session(2), second.lifetime_id)
            .await
            .unwrap(),
        None
    );
}

async fn cursors_say_what_fences_a_lifetime(database: Database) {
    let store = database.store().await;
    three_lifetimes(&store, session(1)).await;
    let asked: Vec<LifetimeId> = (1..=4)
        .map(|generation| lifetime_write(session(1), generation).lifetime_id)
        .collect();
    let mut cursors = store.lifetime_cursors(TOPIC, &asked).await.unwrap();
    cursors.sort_by_key(|cursor| cursor.generation);
    assert_eq!(cursors.len(), 3);
    let first = &cursors[0];
    assert_eq!(
        (
            first.lifetime_id,
            first.session,
            first.generation,
            first.session_generation
        ),
        (asked[0], session(1), 1, 3)
    );
    assert_eq!(
        (first.nonce, first.applied_seq, first.status, first.erased),
        (Some(nonce(1)), 101, ACTIVE, false)
    );
    assert_eq!(
        (first.binding_generation, first.binding_raised_age),
        (0, Duration::ZERO)
    );
    let folded = store.progress(TOPIC, 0).await.unwrap().unwrap().next_offset;
    assert!(folded > 0);
    assert_eq!(first.next_offset, folded);
    assert_eq!(first.server_run, store.server_run().await.unwrap());

    store.raise_binding_generation(session(1), 4).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let cursor = &store.lifetime_cursors(TOPIC, &asked[..1]).await.unwrap()[0];
    assert_eq!(cursor.binding_generation, 4);
    let age = cursor.binding_raised_age;
    assert!(
        age >= Duration::from_millis(40) && age < Duration::from_secs(30),
        "{age:?}"
    );
    assert!(store.lifetime_cursors(TOPIC, &[]).await.unwrap().is_empty());
}

async fn a_thousand_cursors_and_more_are_read(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let sessions: Vec<SessionId> = (1..=1_500).map(session).collect();
    owner
        .write(BatchWrites {
            sessions: sessions.iter().map(|session| session_write(*session)).collect(),
            lifetimes: sessions
                .iter()
                .map(|session| lifetime_write(*session, 1))
                .collect(),
            ..BatchWrites::default()
        })
        .await;
    let asked: Vec<LifetimeId> = sessions
        .iter()
        .map(|session| lifetime_write(*session, 1).lifetime_id)
        .collect();
    assert_eq!(store.lifetime_cursors(TOPIC, &asked).await.unwrap().len(), 1_500);
}

async fn a_pin_is_set_once(database: Database) {
    let store = database.store().await;
    assert_eq!(store.pin(session(1)).await.unwrap(), None);
    assert_eq!(store.ensure_pin(session(1), 5).await.unwrap(), 5);
    assert_eq!(store.ensure_pin(session(1), 6).await.unwrap(), 5);
    assert_eq!(store.pin(session(1)).await.unwrap(), Some(5));
    let pins =
        futures::future::join_all((0..8).map(|partition| store.ensure_pin(session(2), partition))).await;
    let first = pins[0].as_ref().unwrap();
    assert!(pins.iter().all(|pin| pin.as_ref().unwrap() == first), "{pins:?}");
}

async fn an_announced_generation_only_ever_rises(database: Database) {
    let store = database.store().await;
    three_lifetimes(&store, session(1)).await;
    let asked = [lifetime_write(session(1), 3).lifetime_id];
    let announced = async || {
        let cursor = store.lifetime_cursors(TOPIC, &asked).await.unwrap().remove(0);
        (cursor.binding_generation, cursor.binding_raised_age)
    };
    store.raise_binding_generation(session(1), 4).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    store.raise_binding_generation(session(1), 3).await.unwrap();
    let (generation, age) = announced().await;
    assert_eq!(generation, 4);
    assert!(
        age >= Duration::from_millis(100),
        "a lower generation renewed the time: {age:?}"
    );
    // The same bind is published once more: its time-out starts anew.
    store.raise_binding_generation(session(1), 4).await.unwrap();
    let (generation, age) = announced().await;
    assert_eq!(generation, 4);
    assert!(age < Duration::from_millis(100), "{age:?}");

    let error = store.raise_binding_generation(session(9), 1).await.unwrap_err();
    assert!(matches!(error, Error::Bug(_)), "{error}");
}
