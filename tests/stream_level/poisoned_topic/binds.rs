//! Records that would change whose session it is.

use std::collections::BTreeMap;

use bytes::Bytes;
use wakelog_proto::v1::session_record::Record;
use wakelog_proto::v1::{
    AccessChanged, LifetimeBound, LifetimeEnded, RefusalReason, SessionErased, SessionOpened,
};

use super::Scene;
use super::topic::{bind, expect_outcome, expect_quarantined};
use crate::support::refusal::refused;
use crate::support::relay::{commit, stream_left_open};

/// Invariant one-writer: only the bind of the next generation, with the id that follows from it, makes a lifetime current.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_whatever_binds_are_in_the_topic() {
    let mut scene = Scene::start().await;
    let subject = scene.subject.clone();
    let of_this_writer = hex::encode(subject.nonce.as_bytes());
    let good = bind(&subject, "a request", 2);

    let malformed = [
        (
            "a forged lifetime id",
            LifetimeBound {
                lifetime_id: vec![9; 16].into(),
                ..good.clone()
            },
        ),
        (
            "the id of another request",
            LifetimeBound {
                request_id: "another".to_owned(),
                ..good.clone()
            },
        ),
        (
            "the id of another generation",
            LifetimeBound {
                generation: 3,
                ..good.clone()
            },
        ),
        (
            "the current lifetime's id",
            LifetimeBound {
                lifetime_id: subject.lifetime.lifetime_id.clone(),
                ..good.clone()
            },
        ),
        (
            "a lifetime id of 15 bytes",
            LifetimeBound {
                lifetime_id: vec![9; 15].into(),
                ..good.clone()
            },
        ),
        (
            "no lifetime id",
            LifetimeBound {
                lifetime_id: Bytes::new(),
                ..good.clone()
            },
        ),
        ("no request id", bind(&subject, "", 2)),
        ("a request id of 129 bytes", bind(&subject, &"r".repeat(129), 2)),
        ("a NUL in a request id", bind(&subject, "r\0", 2)),
        ("generation 0", bind(&subject, "a request", 0)),
        (
            "a generation beyond all numbers",
            bind(&subject, "a request", u64::MAX),
        ),
    ];
    let bad = malformed.len() as u64;
    for (number, (what, bind)) in (1..).zip(malformed) {
        scene.topic.put_of(&subject, Record::LifetimeBound(bind)).await;
        scene.quarantined += 1;
        scene.goes_on(number, what).await;
        expect_quarantined(&scene.stack, "malformed", number).await;
    }

    // Well-formed, and too late or too early: nothing to put aside.
    for (number, generation) in (1..).zip([1, 3, 4, i64::MAX as u64]) {
        let bind = bind(&subject, "a request", generation);
        scene.topic.put_of(&subject, Record::LifetimeBound(bind)).await;
        scene
            .goes_on(bad, &format!("a bind of generation {generation}"))
            .await;
        expect_outcome(&scene.stack, "bind_lost", number).await;
    }
    for number in 1..=3 {
        scene
            .topic
            .put_of(
                &subject,
                Record::LifetimeBound(bind(&subject, &of_this_writer, 1)),
            )
            .await;
        scene.goes_on(bad, "the current bind again").await;
        expect_outcome(&scene.stack, "duplicate", number).await;
    }
    let end = LifetimeEnded {
        lifetime_id: good.lifetime_id.clone(),
    };
    scene.topic.put_of(&subject, Record::LifetimeEnded(end)).await;
    scene.goes_on(bad, "the end of an unknown lifetime").await;
    expect_outcome(&scene.stack, "end_ignored", 1).await;

    // The bind that is next is a bind, whoever put it there: the writer is fenced, and told so.
    scene.topic.put_of(&subject, Record::LifetimeBound(good)).await;
    scene.bystander.goes_on(&scene.connection, "the next bind").await;
    let messages = subject.entry_stream(scene.subject.last_seq + 1, false, b"fenced\n");
    let answer = stream_left_open(&scene.connection, Some(subject.token()), messages).await;
    let refusal = refused("a fenced stream", answer, RefusalReason::Superseded);
    assert_eq!(refusal.expected, 2);
    let next = scene.subject.next_frame();
    let answer = commit(&scene.connection, Some(subject.token()), &next).await;
    assert_eq!(
        refused("a fenced writer", answer, RefusalReason::Superseded).expected,
        2
    );
    scene
        .topic
        .put_of(
            &subject,
            Record::LifetimeBound(bind(&subject, &of_this_writer, 1)),
        )
        .await;
    scene.bystander.goes_on(&scene.connection, "its bind again").await;
    expect_outcome(&scene.stack, "bind_lost", 5).await;
    scene
        .subject
        .check(&scene.connection, "after the next bind")
        .await;
    scene.end().await;
}

/// Invariant exactly-once-fold: a session stays as it was opened, whatever else says that it opens it.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_of_a_session_that_is_opened_again() {
    let mut scene = Scene::start().await;
    let subject = scene.subject.clone();
    let before = subject
        .described(&scene.connection)
        .await
        .summary
        .expect("a summary");
    let opened = SessionOpened {
        owner: before.owner.clone(),
        partition: subject.partition,
        ..Default::default()
    };
    let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let parent = uuid::Uuid::new_v4().to_string();

    scene
        .topic
        .put_of(&subject, Record::SessionOpened(opened.clone()))
        .await;
    scene.goes_on(0, "the same opening again").await;
    expect_outcome(&scene.stack, "duplicate", 1).await;

    let conflicts = [
        (
            "other labels",
            SessionOpened {
                labels,
                ..opened.clone()
            },
        ),
        (
            "another owner",
            SessionOpened {
                owner: "mallory".to_owned(),
                ..opened.clone()
            },
        ),
        (
            "a parent",
            SessionOpened {
                parent_session_id: parent,
                ..opened.clone()
            },
        ),
        (
            "a subpath",
            SessionOpened {
                subpath: "below".to_owned(),
                ..opened.clone()
            },
        ),
    ];
    for (number, (what, record)) in (1..).zip(conflicts) {
        scene.topic.put_of(&subject, Record::SessionOpened(record)).await;
        scene.quarantined += 1;
        scene.goes_on(number, what).await;
        expect_quarantined(&scene.stack, "session_conflict", number).await;
    }

    let many = (0..33).map(|at| (at.to_string(), String::new())).collect();
    let account = |account: &str, role| {
        Record::AccessChanged(AccessChanged {
            account: account.to_owned(),
            role,
        })
    };
    let malformed = [
        (
            "no owner",
            Record::SessionOpened(SessionOpened {
                owner: String::new(),
                ..opened.clone()
            }),
        ),
        (
            "a NUL in the owner",
            Record::SessionOpened(SessionOpened {
                owner: "a\0".to_owned(),
                ..opened.clone()
            }),
        ),
        (
            "33 labels",
            Record::SessionOpened(SessionOpened {
                labels: many,
                ..opened.clone()
            }),
        ),
        (
            "a parent that is no session",
            Record::SessionOpened(SessionOpened {
                parent_session_id: "x".to_owned(),
                ..opened.clone()
            }),
        ),
        (
            "itself as parent",
            Record::SessionOpened(SessionOpened {
                parent_session_id: subject.session.clone(),
                ..opened.clone()
            }),
        ),
        ("a role of a later build", account("ann", 77)),
        ("a role of nobody", account("", 1)),
        ("a NUL in an account", account("a\0", 1)),
        (
            "the end of no lifetime",
            Record::LifetimeEnded(LifetimeEnded {
                lifetime_id: Bytes::new(),
            }),
        ),
    ];
    for (number, (what, record)) in (1..).zip(malformed) {
        scene.topic.put_of(&subject, record).await;
        scene.quarantined += 1;
        scene.goes_on(4 + number, what).await;
        expect_quarantined(&scene.stack, "malformed", number).await;
    }

    let unknown = uuid::Uuid::new_v4().to_string();
    for record in [Record::SessionErased(SessionErased {}), account("ann", 1)] {
        scene.topic.put_record(subject.partition, &unknown, record).await;
        scene.quarantined += 1;
    }
    scene.goes_on(13, "records of an unknown session").await;
    expect_quarantined(&scene.stack, "unbound", 2).await;

    let after = subject
        .described(&scene.connection)
        .await
        .summary
        .expect("a summary");
    assert_eq!(
        (
            after.owner,
            after.labels,
            after.parent_session_id,
            after.subpath,
            after.partition
        ),
        (
            before.owner,
            before.labels,
            before.parent_session_id,
            before.subpath,
            before.partition
        )
    );
    scene.end().await;
}
