use std::collections::BTreeMap;

use wakelog_model::SessionId;
use wakelog_store::{AccessWrite, BatchWrites, ListQuery, SessionWrite, Store};

use crate::support::Database;
use crate::support::rows::{OWNER, Owner, session, session_write};

on_both_pools!(
    an_unknown_an_erased_and_a_foreign_session_are_the_same_answer,
    a_listing_is_paged_newest_first,
    a_listing_is_filtered_by_labels,
    fold_states_of_a_partition_are_read_in_pages,
);

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

async fn an_unknown_an_erased_and_a_foreign_session_are_the_same_answer(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner
        .write(BatchWrites {
            sessions: vec![
                session_write(session(1)),
                SessionWrite {
                    owner: "mallory".to_owned(),
                    ..session_write(session(2))
                },
                SessionWrite {
                    erased: true,
                    ..session_write(session(3))
                },
            ],
            access: vec![AccessWrite {
                session: session(3),
                account: "bob".to_owned(),
                role: 1,
            }],
            ..BatchWrites::default()
        })
        .await;
    let visible = store.visible_session(session(1), OWNER).await.unwrap().unwrap();
    assert_eq!(
        (visible.session, visible.owner.as_str(), visible.partition),
        (session(1), OWNER, 0)
    );
    for (number, account) in [
        (2, OWNER),
        (3, OWNER),
        (3, "bob"),
        (4, OWNER),
        (1, ""),
        (1, "Alice"),
        (1, "mallory"),
    ] {
        let answer = store.visible_session(session(number), account).await.unwrap();
        assert_eq!(answer, None, "session {number} for {account:?}");
    }
}

async fn list_all(
    store: &Store,
    account: &str,
    limit: u32,
    labels: BTreeMap<String, String>,
) -> Vec<SessionId> {
    let mut query = ListQuery {
        limit,
        after: None,
        labels,
    };
    let mut listed = Vec::new();
    loop {
        let page = store.list_sessions(account, &query).await.unwrap();
        assert!(page.len() <= limit as usize);
        let Some(last) = page.last() else { return listed };
        query.after = Some((last.opened_at_us, last.session));
        listed.extend(page.iter().map(|row| row.session));
    }
}

async fn a_listing_is_paged_newest_first(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    // Sessions of one batch are opened at the same instant: the id decides.
    let mut newest_first = Vec::new();
    for batch in 0..4 {
        let numbers = batch * 10 + 1..=batch * 10 + 5;
        let sessions = numbers.clone().map(|number| session_write(session(number)));
        let foreign = SessionWrite {
            owner: "bob".to_owned(),
            ..session_write(session(batch * 10 + 6))
        };
        let hidden = SessionWrite {
            owner: "bob".to_owned(),
            ..session_write(session(batch * 10 + 7))
        };
        let erased = SessionWrite {
            erased: true,
            ..session_write(session(batch * 10 + 8))
        };
        let shared = AccessWrite {
            session: foreign.session,
            account: OWNER.to_owned(),
            role: 1,
        };
        // An owner who is a subscriber as well sees the session once.
        let own = AccessWrite {
            session: session(batch * 10 + 1),
            account: OWNER.to_owned(),
            role: 1,
        };
        owner
            .write(BatchWrites {
                sessions: sessions.chain([foreign, hidden, erased]).collect(),
                access: vec![shared, own],
                ..BatchWrites::default()
            })
            .await;
        newest_first.splice(0..0, (batch * 10 + 1..=batch * 10 + 6).rev().map(session));
    }
    for limit in [1, 2, 5, 24, 1_000, u32::MAX] {
        assert_eq!(
            list_all(&store, OWNER, limit, BTreeMap::new()).await,
            newest_first,
            "{limit}"
        );
    }
    assert!(list_all(&store, "nobody", 10, BTreeMap::new()).await.is_empty());
    for instant in [u64::MAX, i64::MAX as u64, 0] {
        let query = ListQuery {
            limit: 100,
            after: Some((instant, session(1))),
            ..ListQuery::default()
        };
        let listed = store.list_sessions(OWNER, &query).await.unwrap().len();
        assert_eq!(
            listed,
            if instant == 0 { 0 } else { newest_first.len() },
            "{instant}"
        );
    }
    let none = ListQuery {
        limit: 0,
        ..ListQuery::default()
    };
    assert!(store.list_sessions(OWNER, &none).await.unwrap().is_empty());
}

async fn a_listing_is_filtered_by_labels(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let with = |number, pairs: &[(&str, &str)]| SessionWrite {
        labels: labels(pairs),
        ..session_write(session(number))
    };
    owner
        .write(BatchWrites {
            sessions: vec![
                with(1, &[("project", "a"), ("stage", "x")]),
                with(2, &[("project", "a")]),
                with(3, &[("project", "b"), ("stage", "x")]),
                with(4, &[]),
                with(5, &[("odd \"key\"", "käse\\\n'")]),
            ],
            ..BatchWrites::default()
        })
        .await;
    let listed = async |pairs: &[(&str, &str)]| list_all(&store, OWNER, 2, labels(pairs)).await;
    assert_eq!(listed(&[("project", "a")]).await, [session(2), session(1)]);
    assert_eq!(listed(&[("project", "a"), ("stage", "x")]).await, [session(1)]);
    assert_eq!(listed(&[("odd \"key\"", "käse\\\n'")]).await, [session(5)]);
    assert!(listed(&[("project", "")]).await.is_empty());
    assert_eq!(listed(&[]).await.len(), 5);
}

async fn fold_states_of_a_partition_are_read_in_pages(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let numbers = [0, 1, 2, 0x8000_0000_0000_0000_0000_0000_0000_0000, u128::MAX];
    let mut sessions: Vec<SessionWrite> = numbers
        .iter()
        .map(|number| SessionWrite {
            state: number.to_be_bytes().to_vec(),
            ..session_write(session(*number))
        })
        .collect();
    sessions[1].erased = true;
    sessions.push(SessionWrite {
        partition: 1,
        ..session_write(session(3))
    });
    owner
        .write(BatchWrites {
            sessions,
            ..BatchWrites::default()
        })
        .await;

    for limit in [1, 2, 100] {
        let (mut read, mut after) = (Vec::new(), None);
        loop {
            let page = store.session_digests(0, after, limit).await.unwrap();
            let Some((last, _)) = page.last() else { break };
            after = Some(*last);
            read.extend(page);
        }
        let expected: Vec<_> = numbers
            .iter()
            .map(|number| (session(*number), number.to_be_bytes().to_vec().into()))
            .collect();
        assert_eq!(read, expected, "{limit}");
    }
}
