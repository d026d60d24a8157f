//! Every field that can be wrong with a record by itself, at its limits.

mod parts;

use bytes::Bytes;
use wakelog_fold::{Malformed, Outcome, Reason};
use wakelog_model::LifetimeId;
use wakelog_proto::v1::{
    AccessChanged, AccessRole, LifetimeBound, LifetimeEnded, SessionOpened, SessionRecord,
};

use crate::bench::Bench;
use crate::records::{Variant, access, bind, opened, session};

fn malformed(reason: Malformed) -> Outcome {
    Outcome::Quarantined(Reason::Malformed(reason))
}

/// Whatever the session is, malformed is malformed (but for an erased one).
fn check(record: &impl Variant, reason: &Malformed) {
    let (bound, _) = Bench::bound();
    for mut bench in [Bench::default(), Bench::opened(), bound] {
        assert_eq!(
            bench.fold(record),
            malformed(reason.clone()),
            "{:?}",
            record.record()
        );
    }
    assert!(!reason.to_string().is_empty());
}

fn changed<T: Variant>(record: &T, change: impl FnOnce(&mut T)) -> T {
    let mut record = record.clone();
    change(&mut record);
    record
}

#[test]
fn a_record_must_hold_a_variant() {
    check(&SessionRecord { record: None }, &Malformed::NoRecord);
}

fn label(key: &str, value: &str) -> SessionOpened {
    changed(&opened(), |opened| {
        opened.labels = [(key.to_owned(), value.to_owned())].into()
    })
}

#[test]
fn texts_of_an_opening_are_checked() {
    let with_owner = |owner: String| changed(&opened(), |opened| opened.owner = owner);
    let with_subpath = |subpath: String| changed(&opened(), |opened| opened.subpath = subpath);
    let bad = [
        (with_owner(String::new()), Malformed::TextEmpty { field: "owner" }),
        (
            with_owner("x".repeat(129)),
            Malformed::TextTooLong {
                field: "owner",
                limit: 128,
                actual: 129,
            },
        ),
        (
            with_owner("a\0".into()),
            Malformed::TextWithNul { field: "owner" },
        ),
        (label("", "v"), Malformed::TextEmpty { field: "label key" }),
        (
            label(&"k".repeat(65), "v"),
            Malformed::TextTooLong {
                field: "label key",
                limit: 64,
                actual: 65,
            },
        ),
        (label("\0", "v"), Malformed::TextWithNul { field: "label key" }),
        (
            label("k", &"v".repeat(257)),
            Malformed::TextTooLong {
                field: "label value",
                limit: 256,
                actual: 257,
            },
        ),
        (label("k", "v\0"), Malformed::TextWithNul { field: "label value" }),
        (
            with_subpath("s".repeat(513)),
            Malformed::TextTooLong {
                field: "subpath",
                limit: 512,
                actual: 513,
            },
        ),
        (
            with_subpath("\0".into()),
            Malformed::TextWithNul { field: "subpath" },
        ),
    ];
    for (record, reason) in &bad {
        check(record, reason);
    }
    let good = [
        with_owner("x".into()),
        with_owner("x".repeat(128)),
        label("k", ""),
        label(&"k".repeat(64), &"v".repeat(256)),
        with_subpath(String::new()),
        with_subpath("s".repeat(512)),
    ];
    for record in good {
        Bench::default().apply(&[record]);
    }
}

#[test]
fn labels_of_an_opening_are_counted() {
    let labels = |count: usize| {
        changed(&opened(), |opened| {
            opened.labels = (0..count).map(|n| (n.to_string(), String::new())).collect()
        })
    };
    for count in [0, 32] {
        Bench::default().apply(&[labels(count)]);
    }
    check(
        &labels(33),
        &Malformed::TooManyLabels {
            limit: 32,
            actual: 33,
        },
    );
}

#[test]
fn the_parent_of_an_opening_is_another_session_or_none() {
    let with = |parent: String| changed(&opened(), |opened| opened.parent_session_id = parent);
    for parent in [
        "nobody".to_owned(),
        opened().parent_session_id.to_uppercase(),
        " ".into(),
    ] {
        check(&with(parent), &Malformed::ParentNotASession);
    }
    check(&with(session().to_string()), &Malformed::ParentIsItself);
    let mut bench = Bench::default();
    bench.apply(&[with(String::new())]);
    assert_eq!(bench.state.opened().unwrap().parent, None);
}

#[test]
fn access_changes_are_checked() {
    let with = |account: String| access(&account, AccessRole::Subscriber);
    let bad: [(AccessChanged, Malformed); 5] = [
        (with(String::new()), Malformed::TextEmpty { field: "account" }),
        (
            with("x".repeat(129)),
            Malformed::TextTooLong {
                field: "account",
                limit: 128,
                actual: 129,
            },
        ),
        (with("\0".into()), Malformed::TextWithNul { field: "account" }),
        (
            AccessChanged {
                account: "bob".into(),
                role: 2,
            },
            Malformed::UnknownRole { number: 2 },
        ),
        (
            AccessChanged {
                account: "bob".into(),
                role: -1,
            },
            Malformed::UnknownRole { number: -1 },
        ),
    ];
    for (record, reason) in &bad {
        check(record, reason);
    }
    Bench::opened().apply(&[with("x".repeat(128)), with("y".into())]);
}

#[test]
fn binds_are_checked() {
    let good = bind(1, "request");
    let with_id = |id: &[u8]| changed(&good, |bind| bind.lifetime_id = Bytes::copy_from_slice(id));
    let length = |actual| Malformed::Length {
        field: "lifetime_id",
        expected: 16,
        actual,
    };
    let other_session = LifetimeId::for_bind(wakelog_model::SessionId::for_request("x", "y"), "request", 1);
    let bad = [
        (with_id(&[]), length(0)),
        (with_id(&good.lifetime_id[..15]), length(15)),
        (with_id(&[1; 17]), length(17)),
        (with_id(&[1; 16]), Malformed::LifetimeIdNotDerived),
        (with_id(other_session.as_bytes()), Malformed::LifetimeIdNotDerived),
        (
            changed(&good, |bind| bind.request_id = "other".into()),
            Malformed::LifetimeIdNotDerived,
        ),
        (
            changed(&good, |bind| bind.generation = 2),
            Malformed::LifetimeIdNotDerived,
        ),
        (
            bind(0, "request"),
            Malformed::GenerationOutOfRange { generation: 0 },
        ),
        (
            bind(1 << 63, "request"),
            Malformed::GenerationOutOfRange { generation: 1 << 63 },
        ),
        (
            bind(u64::MAX, "request"),
            Malformed::GenerationOutOfRange { generation: u64::MAX },
        ),
        (bind(1, ""), Malformed::TextEmpty { field: "request_id" }),
        (bind(1, "a\0"), Malformed::TextWithNul { field: "request_id" }),
        (
            bind(1, &"r".repeat(129)),
            Malformed::TextTooLong {
                field: "request_id",
                limit: 128,
                actual: 129,
            },
        ),
    ];
    for (record, reason) in &bad {
        check(record, reason);
    }
    Bench::opened().apply::<LifetimeBound>(&[bind(1, &"r".repeat(128)), bind(2, "r")]);
}

#[test]
fn ends_are_checked() {
    for actual in [0, 15, 17] {
        let record = LifetimeEnded {
            lifetime_id: vec![1; actual].into(),
        };
        check(
            &record,
            &Malformed::Length {
                field: "lifetime_id",
                expected: 16,
                actual,
            },
        );
    }
}
