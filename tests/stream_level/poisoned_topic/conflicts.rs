//! Parts that contradict what was applied.

use bytes::Bytes;
use wakelog_client::new_nonce;
use wakelog_proto::v1::{AckLevel, EntryPart, LifetimeStatus, RefusalReason};

use super::Scene;
use super::topic::{entry_part, expect_quarantined, first_part};
use crate::support::refusal::refused;
use crate::support::relay::{commit, post, renew, stream_left_open};
use crate::support::session::{attach_first, open_on, resume, stop, writer};
use crate::support::subject::Subject;
use crate::support::within;

/// What contradicts what was applied, or itself, for a subject that has written one entry.
fn conflicts(subject: &Subject) -> Vec<(&'static str, Vec<EntryPart>)> {
    let (first, next) = (subject.body.clone(), subject.last_seq + 1);
    let second_part = |plain: &[u8]| EntryPart {
        part: 1,
        part_count: 2,
        ..entry_part(subject, next, plain)
    };
    vec![
        (
            "other bytes",
            vec![EntryPart {
                checkpoint: true,
                ..entry_part(subject, 1, b"{\"other\":1}\n")
            }],
        ),
        ("another checkpoint flag", vec![entry_part(subject, 1, &first)]),
        (
            "a count that is not the entry's",
            vec![EntryPart {
                part_count: 5,
                ..entry_part(subject, next, b"a\n")
            }],
        ),
        (
            "a digest that is not the entry's",
            vec![EntryPart {
                entry_digest: vec![7; 16].into(),
                ..entry_part(subject, next, b"a\n")
            }],
        ),
        (
            "a first part that was another",
            vec![first_part(subject, next, b'a'), first_part(subject, next, b'b')],
        ),
        (
            "a first part with another checkpoint flag",
            vec![
                first_part(subject, next, b'a'),
                EntryPart {
                    checkpoint: true,
                    ..first_part(subject, next, b'a')
                },
            ],
        ),
        (
            "a last part with another checkpoint flag",
            vec![
                first_part(subject, next, b'a'),
                EntryPart {
                    checkpoint: true,
                    ..second_part(b"z\n")
                },
            ],
        ),
        (
            "a last part in the place of the first",
            vec![first_part(subject, next, b'a'), entry_part(subject, next, b"z\n")],
        ),
        (
            "a last part with a digest of another entry",
            vec![first_part(subject, next, b'a'), second_part(b"z\n")],
        ),
    ]
}

/// Invariant acked-is-durable: a conflict fails the lifetime and nothing else. Its writer is told, what was acknowledged
/// stays, and the next bind goes on.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_when_a_conflict_fails_the_lifetime() {
    use RefusalReason::LifetimeFailed;
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    let partition = scene.subject.partition;
    let kinds = conflicts(&scene.subject).len();
    for kind in 0..kinds {
        let session = open_on(&connection, &format!("conflict-{kind}"), partition).await;
        let mut subject = Subject::open_in(&connection, session).await;
        let (what, records) = conflicts(&subject).swap_remove(kind);
        for record in records {
            scene.topic.put_part(&subject, record).await;
        }
        scene.quarantined += 1;
        scene.goes_on(0, what).await;
        let described = subject.described(&connection).await;
        assert_eq!(described.quarantined_records, 1, "{what}");
        assert_eq!(
            described.summary.expect("a summary").lifetime_status(),
            LifetimeStatus::Failed,
            "{what}"
        );
        subject.check(&connection, what).await;

        let token = Some(subject.token());
        let next = subject.next_frame();
        // The stream first: it reads how the lifetime stands when it opens, and what the relay knows only admits.
        let messages = subject.entry_stream(subject.last_seq + 1, false, b"{}\n");
        let streamed = stream_left_open(&connection, token, messages).await;
        refused(what, streamed, LifetimeFailed);
        refused(what, commit(&connection, token, &next).await, LifetimeFailed);
        refused(what, post(&connection, token, &next).await, LifetimeFailed);
        refused(what, renew(&connection, token).await, LifetimeFailed);
        refused(what, stop(&connection, &subject.lifetime).await, LifetimeFailed);

        // What a relay that did not know would publish.
        scene
            .topic
            .put_part(
                &subject,
                entry_part(&subject, subject.last_seq + 1, b"{\"late\":1}\n"),
            )
            .await;
        scene.quarantined += 1;
        scene.goes_on(0, what).await;
        expect_quarantined(&scene.stack, "lifetime_failed", 1 + kind as u64).await;

        subject.attach_anew(&connection).await;
        assert_eq!(subject.lifetime.generation, 2, "{what}");
        subject.goes_on(&connection, 2, what).await;
        let (_, body) = resume(&connection, &subject.session, "resume")
            .await
            .expect("it resumes");
        assert!(body == subject.body, "{what}: a resume gives what was written");
    }
    expect_quarantined(&scene.stack, "conflict", kinds as u64).await;
    scene.end().await;
}

/// The same for a writer whose stream is open, with entries in flight: it is told, and everything that it was acknowledged
/// with `STORE` is there.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_for_a_writer_in_flight_when_its_lifetime_fails() {
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    let session = open_on(&connection, "in flight", scene.subject.partition).await;
    let nonce = new_nonce();
    let lifetime = attach_first(&connection, &session, nonce)
        .await
        .expect("it attaches");
    let mut stream = writer(&connection, &lifetime, nonce, AckLevel::Store)
        .await
        .expect("it writes");
    let line = |number: u64| Bytes::from(format!("{{\"n\":{number}}}\n"));
    let mut sent = 0;
    while sent < 20 {
        sent += 1;
        within("an append", stream.append(line(sent), sent == 1))
            .await
            .expect("it is taken");
    }
    within("a drain", stream.drain()).await.expect("it drains");

    let partition = scene.subject.partition;
    let mut subject = Subject {
        session,
        partition,
        lifetime,
        nonce,
        last_seq: 20,
        body: Vec::new(),
    };
    let conflict = entry_part(&subject, 3, b"{\"other\":1}\n");
    let (refused, ()) = tokio::join!(
        async {
            loop {
                sent += 1;
                let write = async {
                    stream.append(line(sent), false).await?;
                    stream.drain().await
                };
                if let Err(error) = within("an entry", write).await {
                    return error;
                }
                assert!(sent < 20_000, "it is never told");
            }
        },
        scene.topic.put_part(&subject, conflict)
    );
    assert_eq!(
        refused.refusal_reason(),
        Some(RefusalReason::LifetimeFailed),
        "{refused}"
    );
    scene.quarantined += 1;
    scene.goes_on(0, "a conflict under a stream").await;

    subject.last_seq = stream.acked().entry_seq;
    assert!(subject.last_seq >= 20);
    let described = subject.described(&connection).await;
    let applied = described.lifetimes[0].applied_entry_seq;
    assert!(
        (subject.last_seq..=sent).contains(&applied),
        "acknowledged {}, applied {applied}",
        subject.last_seq
    );
    // Entries that were in the log behind the conflict are in quarantine too.
    scene.quarantined += described.quarantined_records - 1;
    subject.body = (1..=applied).flat_map(line).collect();
    subject.check(&connection, "a conflict under a stream").await;
    subject.attach_anew(&connection).await;
    subject
        .goes_on(&connection, described.quarantined_records, "the next bind")
        .await;
    scene.end().await;
}
