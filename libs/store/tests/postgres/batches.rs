use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use wakelog_store::{AccessWrite, BatchWrites, Effect, Error, LifetimeWrite, LoadedSession, SessionWrite};

use crate::support::Database;
use crate::support::rows::{
    OWNER, Owner, TOPIC, lifetime_write, nonce, part, quarantined, session, session_with_entries,
    session_write,
};

on_both_pools!(
    a_batch_is_stored_with_its_progress,
    a_key_that_is_there_is_a_bug_and_nothing_is_written,
    discarded_parts_go_before_new_ones_come,
    put_before_prune_a_batch_discards_no_complete_entry,
    what_a_bind_fixed_is_never_overwritten,
    a_session_keeps_when_it_was_opened_and_what_it_was_opened_with,
    times_are_those_of_the_log_and_never_ahead,
    a_number_that_does_not_fit_is_a_typed_error,
    the_last_change_of_access_counts,
);

async fn a_batch_is_stored_with_its_progress(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner
        .write(session_with_entries(session(1), &[b"one", b"two"]))
        .await;

    let progress = store.progress(TOPIC, 0).await.unwrap().unwrap();
    assert_eq!(
        (progress.epoch, progress.next_offset, progress.last_record_crc),
        (owner.epoch, 1, Some(7))
    );
    assert_eq!(store.pin(session(1)).await.unwrap(), Some(0));
    assert_eq!(store.body_length(session(1), 1, 2).await.unwrap(), 6);
    assert_eq!(
        store.session_state(session(1)).await.unwrap(),
        Some(Bytes::from_static(b"state"))
    );
    assert_eq!(store.session_state(session(2)).await.unwrap(), None);

    let mut batch = store.begin_batch(TOPIC, 0, owner.epoch, 1).await.unwrap();
    let loaded = batch.load_sessions(&[session(1), session(2)]).await.unwrap();
    let known = LoadedSession {
        state: Bytes::from_static(b"state"),
        root_erased: false,
    };
    assert_eq!(loaded.into_iter().collect::<Vec<_>>(), [(session(1), known)]);
    assert!(batch.load_sessions(&[]).await.unwrap().is_empty());
    batch.rollback().await.unwrap();
}

async fn a_key_that_is_there_is_a_bug_and_nothing_is_written(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(session_with_entries(session(1), &[b"one"])).await;
    owner
        .write(BatchWrites {
            quarantined: vec![quarantined(5, b"key", b"raw")],
            ..BatchWrites::default()
        })
        .await;
    let rows = database.rows().await;

    let stolen_id = LifetimeWrite {
        lifetime_id: lifetime_write(session(1), 1).lifetime_id,
        ..lifetime_write(session(2), 1)
    };
    let wrong = [
        BatchWrites {
            parts: vec![part(session(1), 1, 0, b"one")],
            ..BatchWrites::default()
        },
        BatchWrites {
            quarantined: vec![quarantined(5, b"key", b"raw")],
            ..BatchWrites::default()
        },
        BatchWrites {
            lifetimes: vec![stolen_id],
            ..BatchWrites::default()
        },
        BatchWrites {
            parts: vec![part(session(2), 1, 0, b"a"), part(session(2), 1, 0, b"a")],
            ..BatchWrites::default()
        },
        BatchWrites {
            sessions: vec![session_write(session(2)), session_write(session(2))],
            ..BatchWrites::default()
        },
        BatchWrites {
            sessions: vec![SessionWrite {
                owner: "nul\0".to_owned(),
                ..session_write(session(2))
            }],
            ..BatchWrites::default()
        },
        BatchWrites {
            sessions: vec![SessionWrite {
                owner: "mallory".to_owned(),
                ..session_write(session(1))
            }],
            ..BatchWrites::default()
        },
    ];
    for mut writes in wrong {
        writes.sessions.push(session_write(session(3)));
        let error = owner.try_write(&writes).await.unwrap_err();
        assert!(matches!(error, Error::Bug(_)), "{error}");
        assert_eq!(error.effect(), Effect::CertainlyNot);
        assert_eq!(database.rows().await, rows, "{writes:?}");
    }
    let progress = store.progress(TOPIC, 0).await.unwrap().unwrap();
    assert_eq!(progress.next_offset, 2);
}

async fn discarded_parts_go_before_new_ones_come(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let mut first = session_with_entries(session(1), &[b"one", b"unfinished"]);
    first.sessions[0].last_entry_seq = 1;
    first.parts.push(part(session(1), 2, 1, b"unfinished as well"));
    first.parts.push(part(session(2), 2, 0, b"of another session"));
    owner.write(first).await;
    owner
        .write(BatchWrites {
            discarded_entries: vec![(session(1), 2), (session(1), 9)],
            parts: vec![part(session(1), 2, 0, b"new")],
            ..BatchWrites::default()
        })
        .await;
    let parts = store.parts_page(session(1), None, 9, usize::MAX).await.unwrap();
    assert_eq!(
        parts,
        [part(session(1), 1, 0, b"one"), part(session(1), 2, 0, b"new")]
    );
    assert_eq!(
        store
            .parts_page(session(2), None, 9, usize::MAX)
            .await
            .unwrap()
            .len(),
        1
    );
}

async fn put_before_prune_a_batch_discards_no_complete_entry(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner
        .write(session_with_entries(session(1), &[b"one", b"two"]))
        .await;
    let discards = BatchWrites {
        discarded_entries: vec![(session(1), 2)],
        ..BatchWrites::default()
    };
    let error = owner.try_write(&discards).await.unwrap_err();
    assert!(matches!(error, Error::Bug(_)), "{error}");
    assert_eq!(store.body_length(session(1), 1, 2).await.unwrap(), 6);
}

async fn what_a_bind_fixed_is_never_overwritten(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let bound = LifetimeWrite {
        base: 4,
        body_start: 3,
        ..lifetime_write(session(1), 1)
    };
    let open = session_write(session(1));
    owner
        .write(BatchWrites {
            sessions: vec![open],
            lifetimes: vec![bound.clone()],
            ..BatchWrites::default()
        })
        .await;
    let running = LifetimeWrite {
        nonce: Some(nonce(1)),
        applied_seq: 2,
        status: 2,
        ..bound
    };
    owner
        .write(BatchWrites {
            lifetimes: vec![running.clone()],
            ..BatchWrites::default()
        })
        .await;

    let wrong = [
        LifetimeWrite {
            base: 5,
            ..running.clone()
        },
        LifetimeWrite {
            body_start: 1,
            ..running.clone()
        },
        LifetimeWrite {
            request_id: "another".to_owned(),
            ..running.clone()
        },
        LifetimeWrite {
            lifetime_id: lifetime_write(session(9), 9).lifetime_id,
            ..running.clone()
        },
        LifetimeWrite {
            nonce: Some(nonce(2)),
            ..running.clone()
        },
        LifetimeWrite {
            nonce: None,
            ..running.clone()
        },
    ];
    for write in wrong {
        let write = LifetimeWrite {
            applied_seq: 99,
            ..write
        };
        let error = owner
            .try_write(&BatchWrites {
                lifetimes: vec![write],
                ..BatchWrites::default()
            })
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Bug(_)), "{error}");
    }
    let row = store
        .lifetime_by_id(session(1), running.lifetime_id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (row.base, row.body_start, row.request_id.as_str()),
        (4, 3, "request-1")
    );
    assert_eq!((row.nonce, row.applied_seq, row.status), (Some(nonce(1)), 2, 2));
}

async fn a_session_keeps_when_it_was_opened_and_what_it_was_opened_with(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let labels = BTreeMap::from([("project".to_owned(), "wake \"up\"".to_owned())]);
    let opened = SessionWrite {
        labels: labels.clone(),
        subpath: "a/b".to_owned(),
        ..session_write(session(1))
    };
    owner
        .write(BatchWrites {
            sessions: vec![opened],
            ..BatchWrites::default()
        })
        .await;
    let before = store.visible_session(session(1), OWNER).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let changed = SessionWrite {
        state: b"another".to_vec(),
        last_entry_seq: 3,
        last_checkpoint_seq: 2,
        generation: 1,
        lifetime_status: 1,
        ..session_write(session(1))
    };
    owner
        .write(BatchWrites {
            sessions: vec![changed],
            ..BatchWrites::default()
        })
        .await;
    let after = store.visible_session(session(1), OWNER).await.unwrap().unwrap();
    assert_eq!(
        (after.opened_at_us, &after.labels, after.subpath.as_str()),
        (before.opened_at_us, &labels, "a/b")
    );
    assert!(after.updated_at_ms > before.updated_at_ms);
    assert_eq!(
        (
            after.last_entry_seq,
            after.last_checkpoint_seq,
            after.generation,
            after.lifetime_status
        ),
        (3, 2, 1, 1)
    );
    assert_eq!(
        store.session_state(session(1)).await.unwrap(),
        Some(Bytes::from_static(b"another"))
    );
}

/// A fold of the same log later must say the same, and whoever measures an age must not be led astray by another clock.
async fn times_are_those_of_the_log_and_never_ahead(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let at = |number, opened_at_us, updated_at_us, bound_at_ms| BatchWrites {
        sessions: vec![SessionWrite {
            generation: 1,
            opened_at_us,
            updated_at_us,
            ..session_write(session(number))
        }],
        lifetimes: vec![LifetimeWrite {
            bound_at_ms,
            ..lifetime_write(session(number), 1)
        }],
        ..BatchWrites::default()
    };
    let past = 1_700_000_000_000_000;
    owner
        .write(at(1, Some(past), Some(past + 1_000), Some(past / 1_000)))
        .await;
    owner.write(at(1, Some(7), Some(past + 9_000), Some(7))).await;
    owner
        .write(at(2, Some(u64::MAX), Some(u64::MAX), Some(u64::MAX)))
        .await;
    owner.write(at(3, None, None, None)).await;
    let seen = async |number| {
        let row = store
            .visible_session(session(number), OWNER)
            .await
            .unwrap()
            .unwrap();
        let bound = store.lifetimes(session(number), 1).await.unwrap()[0].bound_at_ms;
        (row.opened_at_us, row.updated_at_ms, bound)
    };
    assert_eq!(seen(1).await, (past, past / 1_000 + 9, past / 1_000));
    let now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let now = u64::try_from(database.number(now).await).unwrap();
    for number in [2, 3] {
        let (opened, updated, bound) = seen(number).await;
        for at in [opened / 1_000, updated, bound] {
            assert!(
                (past / 1_000 + 10..=now).contains(&at),
                "{at} of session {number}"
            );
        }
    }
}

async fn a_number_that_does_not_fit_is_a_typed_error(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let too_large = i64::MAX as u64 + 1;
    let wrong = [
        BatchWrites {
            parts: vec![part(session(1), too_large, 0, b"a")],
            ..BatchWrites::default()
        },
        BatchWrites {
            parts: vec![part(session(1), 1, u32::MAX, b"a")],
            ..BatchWrites::default()
        },
        BatchWrites {
            discarded_entries: vec![(session(1), u64::MAX)],
            ..BatchWrites::default()
        },
        BatchWrites {
            sessions: vec![SessionWrite {
                last_entry_seq: too_large,
                ..session_write(session(1))
            }],
            ..BatchWrites::default()
        },
        BatchWrites {
            lifetimes: vec![LifetimeWrite {
                applied_seq: too_large,
                ..lifetime_write(session(1), 1)
            }],
            ..BatchWrites::default()
        },
    ];
    for writes in wrong {
        let error = owner.try_write(&writes).await.unwrap_err();
        assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
        assert_eq!(error.effect(), Effect::CertainlyNot);
    }
    let error = store
        .raise_binding_generation(session(1), u64::MAX)
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::OutOfRange {
                what: "generation",
                value: u64::MAX
            }
        ),
        "{error}"
    );
    // The largest number that fits is stored as it is.
    owner
        .write(BatchWrites {
            parts: vec![part(session(1), i64::MAX as u64, 0, b"a")],
            ..BatchWrites::default()
        })
        .await;
    let parts = store
        .parts_page(session(1), None, u64::MAX, usize::MAX)
        .await
        .unwrap();
    assert_eq!(parts[0].entry_seq, i64::MAX as u64);
}

async fn the_last_change_of_access_counts(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let access = |account: &str, role| AccessWrite {
        session: session(1),
        account: account.to_owned(),
        role,
    };
    owner
        .write(BatchWrites {
            sessions: vec![session_write(session(1))],
            access: vec![
                access("bob", 1),
                access("carol", 1),
                access("bob", 0),
                access("dave", 0),
                access("dave", 1),
            ],
            ..BatchWrites::default()
        })
        .await;
    let sees = async |account| {
        store
            .visible_session(session(1), account)
            .await
            .unwrap()
            .is_some()
    };
    assert_eq!(
        [sees("bob").await, sees("carol").await, sees("dave").await],
        [false, true, true]
    );
    owner
        .write(BatchWrites {
            access: vec![access("carol", 0), access("bob", 1)],
            ..BatchWrites::default()
        })
        .await;
    assert_eq!(
        [sees("bob").await, sees("carol").await, sees("dave").await],
        [true, false, true]
    );
}
