//! Opening, access, erasing, partitions.

use std::collections::BTreeMap;

use wakelog_fold::{Change, Context, Outcome, Reason, SessionState};
use wakelog_proto::v1::{AccessRole, LifetimeStatus, SessionErased, SessionOpened, SessionRecord};

use crate::bench::{Bench, DUPLICATE};
use crate::records::{ANNE, HERE, PARTITION, Variant, access, bind, delta, end, entry, opened, session};

const ELSEWHERE: Context = Context {
    partition: PARTITION + 1,
    root_erased: false,
};
const ROOT_ERASED: Context = Context {
    partition: PARTITION,
    root_erased: true,
};

/// One well-formed record of each kind but `SessionOpened` and `SessionErased`.
fn others() -> Vec<SessionRecord> {
    let lifetime = bind(1, "request");
    vec![
        access("bob", AccessRole::Subscriber).record(),
        lifetime.record(),
        delta(&lifetime, ANNE, 1, "a").record(),
        end(&lifetime).record(),
    ]
}

#[test]
fn opening_makes_the_session_known() {
    let mut bench = Bench::default();
    assert!(!bench.state.is_known());
    assert_eq!(bench.state.opened(), None);
    assert_eq!(bench.fold(&opened()), Outcome::Applied(Change::SessionOpened));
    assert!(bench.state.is_known());
    assert!(!bench.state.is_erased());
    let record = opened();
    let known = bench.state.opened().unwrap();
    assert_eq!((&known.owner, &known.labels), (&record.owner, &record.labels));
    assert_eq!(known.parent.unwrap().to_string(), record.parent_session_id);
    assert_eq!(
        (&known.subpath, known.partition),
        (&record.subpath, record.partition)
    );
    assert_eq!(
        (bench.state.last_entry_seq(), bench.state.last_checkpoint_seq()),
        (0, 0)
    );
}

#[test]
fn opening_again_is_a_duplicate_if_equal_else_a_conflict() {
    let mut bench = Bench::opened();
    assert_eq!(bench.fold(&opened()), DUPLICATE);
    let changes: [fn(&mut SessionOpened); 5] = [
        |opened| opened.owner = "mallory".into(),
        |opened| opened.labels.clear(),
        |opened| opened.parent_session_id.clear(),
        |opened| opened.subpath.clear(),
        |opened| {
            opened.labels = [
                ("project".into(), "other".into()),
                ("empty".into(), String::new()),
            ]
            .into()
        },
    ];
    for change in changes {
        let mut other = opened();
        change(&mut other);
        assert_eq!(
            bench.fold(&other),
            Outcome::Quarantined(Reason::SessionConflict),
            "{other:?}"
        );
    }
    // On another partition, and saying so: not the same session opening.
    let elsewhere = SessionOpened {
        partition: ELSEWHERE.partition,
        ..opened()
    };
    assert_eq!(
        bench.fold_in(&elsewhere, ELSEWHERE),
        Outcome::Quarantined(Reason::SessionConflict)
    );
}

#[test]
fn a_record_on_another_partition_is_put_aside() {
    let wrong = Outcome::Quarantined(Reason::WrongPartition);
    assert_eq!(Bench::default().fold_in(&opened(), ELSEWHERE), wrong);
    let mut bench = Bench::opened();
    assert_eq!(bench.fold_in(&opened(), ELSEWHERE), wrong);
    assert_eq!(bench.fold_in(&SessionErased {}, ELSEWHERE), wrong);
    for record in others() {
        assert_eq!(bench.fold_in(&record, ELSEWHERE), wrong, "{record:?}");
    }
    let lifetime = bench.bind(1);
    // Before anything else that the content could be.
    for record in others() {
        assert_eq!(bench.fold_in(&record, ELSEWHERE), wrong, "{record:?}");
    }
    assert_eq!(
        bench.fold_in(&delta(&bind(1, "unknown"), ANNE, 1, "a"), ELSEWHERE),
        wrong
    );
    bench.apply(&[delta(&lifetime, ANNE, 1, "a")]);
    assert_eq!(
        bench.fold_in(&delta(&lifetime, ANNE, 1, "other"), ELSEWHERE),
        wrong
    );
}

#[test]
fn anything_for_an_unknown_session_is_unbound() {
    let unbound = Outcome::Quarantined(Reason::Unbound);
    let mut bench = Bench::default();
    assert_eq!(bench.fold(&SessionErased {}), unbound);
    assert_eq!(bench.fold_in(&SessionErased {}, ROOT_ERASED), unbound);
    for record in others() {
        assert_eq!(bench.fold(&record), unbound, "{record:?}");
        assert_eq!(bench.fold_in(&record, ELSEWHERE), unbound, "{record:?}");
    }
}

#[test]
fn access_is_changed_account_by_account_and_the_last_wins() {
    let mut bench = Bench::opened();
    let changed = |account: &str, role| {
        Outcome::Applied(Change::AccessChanged {
            account: account.into(),
            role,
        })
    };
    let (none, subscriber) = (AccessRole::Unspecified, AccessRole::Subscriber);
    assert_eq!(bench.fold(&access("bob", none)), DUPLICATE);
    assert_eq!(bench.fold(&access("bob", subscriber)), changed("bob", subscriber));
    assert_eq!(bench.fold(&access("bob", subscriber)), DUPLICATE);
    assert_eq!(
        bench.fold(&access("carol", subscriber)),
        changed("carol", subscriber)
    );
    let both: BTreeMap<_, _> = [("bob".to_owned(), subscriber), ("carol".to_owned(), subscriber)].into();
    assert_eq!(bench.state.access(), &both);
    assert_eq!(bench.fold(&access("bob", none)), changed("bob", none));
    assert_eq!(bench.fold(&access("bob", none)), DUPLICATE);
    assert_eq!(bench.state.access().keys().collect::<Vec<_>>(), ["carol"]);
}

#[test]
fn erasing_leaves_a_tombstone() {
    let (mut bench, lifetime) = Bench::bound();
    bench.apply(&[access("bob", AccessRole::Subscriber)]);
    bench.apply(&[delta(&lifetime, ANNE, 1, "a")]);
    bench.apply(&entry(&lifetime, ANNE, 2, false, &["x", "y"])[..1]);
    assert_eq!(
        bench.fold(&SessionErased {}),
        Outcome::Applied(Change::SessionErased)
    );
    assert!(bench.state.is_erased() && bench.state.is_known());
    assert!(bench.state.access().is_empty());
    assert_eq!(bench.lifetime().open_parts(), 0);
    assert_eq!((bench.state.last_entry_seq(), bench.state.generation()), (1, 1));
    assert_eq!(bench.lifetime().status(), LifetimeStatus::Active);
    assert_eq!(bench.fold(&SessionErased {}), Outcome::ErasedSession);
    assert_eq!(bench.fold(&opened()), Outcome::ErasedSession);
    assert_eq!(bench.fold(&SessionOpened::default()), Outcome::ErasedSession);
    for record in others() {
        assert_eq!(bench.fold(&record), Outcome::ErasedSession, "{record:?}");
        assert_eq!(
            bench.fold_in(&record, ELSEWHERE),
            Outcome::ErasedSession,
            "{record:?}"
        );
    }
}

#[test]
fn a_session_without_a_lifetime_can_be_erased() {
    let mut bench = Bench::opened();
    assert_eq!(
        bench.fold(&SessionErased {}),
        Outcome::Applied(Change::SessionErased)
    );
    assert_eq!(bench.state.lifetime(), None);
}

#[test]
fn below_an_erased_root_nothing_is_kept() {
    let mut bench = Bench::default();
    assert_eq!(bench.fold_in(&opened(), ROOT_ERASED), Outcome::ErasedSession);
    assert!(!bench.state.is_known());
    let (mut bench, _) = Bench::bound();
    for record in others() {
        assert_eq!(
            bench.fold_in(&record, ROOT_ERASED),
            Outcome::ErasedSession,
            "{record:?}"
        );
    }
    assert!(!bench.state.is_erased());
    // It still gets its own tombstone.
    assert_eq!(
        bench.fold_in(&SessionErased {}, ROOT_ERASED),
        Outcome::Applied(Change::SessionErased)
    );
    assert!(bench.state.is_erased());
}

#[test]
fn states_of_equal_logs_are_equal_to_the_byte() {
    let fold_all = || {
        let (mut bench, lifetime) = Bench::bound();
        bench.apply(&[
            access("bob", AccessRole::Subscriber),
            access("anna", AccessRole::Subscriber),
        ]);
        bench.apply(&entry(&lifetime, ANNE, 1, true, &["x", "y"]));
        bench.apply(&entry(&lifetime, ANNE, 2, false, &["x", "y"])[..1]);
        bench.state
    };
    assert_eq!(fold_all().encode(), fold_all().encode());
    assert_eq!(SessionState::default().encode(), Vec::<u8>::new());
    assert_eq!(SessionState::decode(&[]), Ok(SessionState::default()));
    assert_eq!(HERE.partition, fold_all().opened().unwrap().partition);
    // The stored form is a contract: a build that changes it cannot go on with the states of another.
    assert_eq!(session().to_string(), "649c58e3-bc29-8528-baf5-6939f10fa2cd");
    assert_eq!(
        hex::encode(fold_all().digest()),
        "0138aebbdc304d6c34d57551cd3efcee11a7ba9fe9a7973533b846b2701c6e38"
    );
}

#[test]
fn reasons_have_stable_names() {
    use wakelog_fold::{ConflictKind, Malformed};
    let names = [
        (Reason::Malformed(Malformed::NoRecord), "malformed"),
        (Reason::WrongPartition, "wrong_partition"),
        (Reason::SessionConflict, "session_conflict"),
        (Reason::Unbound, "unbound"),
        (Reason::Fenced, "fenced"),
        (Reason::LifetimeFailed, "lifetime_failed"),
        (Reason::SecondWriter, "second_writer"),
        (Reason::Conflict(ConflictKind::PartCount), "conflict"),
    ];
    for (reason, name) in names {
        assert_eq!(reason.name(), name);
        assert!(!reason.to_string().is_empty());
    }
    let kinds = [
        ConflictKind::CheckpointFlag,
        ConflictKind::PartCount,
        ConflictKind::EntryDigest,
        ConflictKind::PartAltered,
        ConflictKind::EntryAltered,
    ];
    let texts: std::collections::BTreeSet<_> = kinds.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), kinds.len());
    assert!(texts.iter().all(|text| text.starts_with("the ")));
}
