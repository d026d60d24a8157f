//! Parts that are not what they say, or are nobody's.

use bytes::Bytes;
use wakelog_client::new_nonce;
use wakelog_model::encode_part;
use wakelog_proto::v1::EntryPart;
use wakelog_proto::v1::session_record::Record;

use super::Scene;
use super::topic::{entry_part, expect_outcome, expect_quarantined, first_part};
use crate::support::relay::PART_BYTES;

/// What is done to a good part: a name, the reason that it must be put aside for, and the change.
type SpoiledPart = (&'static str, &'static str, Box<dyn Fn(&mut EntryPart)>);

/// A change that makes a good part a bad one.
type Spoil = fn(&mut EntryPart);

/// Invariant byte-exact: a part whose bytes are not what it says is never applied; its writer goes on with the entry.
#[tokio::test(flavor = "multi_thread")]
async fn byte_exact_of_parts_that_are_not_what_they_say() {
    let mut scene = Scene::start().await;
    let zstd = |plain: Vec<u8>| {
        let plain = Bytes::from(plain);
        let (encoding, body) = encode_part(&plain);
        assert_eq!(encoding as i32, 2, "it is worth compressing");
        body
    };
    let bomb = zstd(vec![b'z'; 64 * 1024 * 1024]);
    let compressed = zstd(vec![b'z'; 4096]);
    let spoils: Vec<SpoiledPart> = vec![
        (
            "no encoding",
            "unknown_encoding",
            Box::new(|part| part.encoding = 0),
        ),
        (
            "an encoding of a later build",
            "unknown_encoding",
            Box::new(|part| part.encoding = 99),
        ),
        (
            "a negative encoding",
            "unknown_encoding",
            Box::new(|part| part.encoding = i32::MIN),
        ),
        (
            "another part digest",
            "malformed",
            Box::new(|part| (part.part_digest, part.entry_digest) = (vec![7; 16].into(), vec![7; 16].into())),
        ),
        (
            "a part digest of 15 bytes",
            "malformed",
            Box::new(|part| part.part_digest = vec![7; 15].into()),
        ),
        (
            "a length too small",
            "malformed",
            Box::new(|part| part.plain_length -= 1),
        ),
        (
            "a length too large",
            "malformed",
            Box::new(|part| part.plain_length += 1),
        ),
        ("no length", "malformed", Box::new(|part| part.plain_length = 0)),
        (
            "the largest length",
            "malformed",
            Box::new(|part| part.plain_length = u32::MAX),
        ),
        ("no bytes", "malformed", Box::new(|part| part.body = Bytes::new())),
        (
            "plain bytes as zstd",
            "malformed",
            Box::new(|part| part.encoding = 2),
        ),
        (
            "zstd of other bytes",
            "malformed",
            Box::new(move |part| (part.encoding, part.body) = (2, compressed.clone())),
        ),
        (
            "zstd of 64 MiB",
            "malformed",
            Box::new(move |part| {
                (part.encoding, part.body, part.plain_length) = (2, bomb.clone(), PART_BYTES as u32);
            }),
        ),
        ("entry 0", "malformed", Box::new(|part| part.lifetime_seq = 0)),
        (
            "an entry beyond all numbers",
            "malformed",
            Box::new(|part| part.lifetime_seq = u64::MAX),
        ),
        (
            "a part beyond the largest entry",
            "malformed",
            Box::new(|part| part.part = u32::MAX),
        ),
        (
            "a short part that is not the last",
            "malformed",
            Box::new(|part| {
                (part.last, part.part_count, part.entry_digest) = (false, 0, Bytes::new());
            }),
        ),
        (
            "a last part without a count",
            "malformed",
            Box::new(|part| part.part_count = 0),
        ),
        (
            "a last part without an entry digest",
            "malformed",
            Box::new(|part| part.entry_digest = Bytes::new()),
        ),
        (
            "a part in the middle with a count",
            "malformed",
            Box::new(|part| part.last = false),
        ),
        (
            "a lifetime id of 17 bytes",
            "malformed",
            Box::new(|part| part.lifetime_id = vec![1; 17].into()),
        ),
        (
            "a nonce of no bytes",
            "malformed",
            Box::new(|part| part.writer_nonce = Bytes::new()),
        ),
        ("generation 0", "malformed", Box::new(|part| part.generation = 0)),
        (
            "another generation of the lifetime",
            "malformed",
            Box::new(|part| part.generation = 9),
        ),
    ];
    let (mut unknown, mut malformed) = (0, 0);
    for (number, (what, reason, spoil)) in (1..).zip(spoils) {
        let mut part = entry_part(
            &scene.subject,
            scene.subject.last_seq + 1,
            b"{\"from\":\"elsewhere\"}\n",
        );
        spoil(&mut part);
        scene.topic.put_part(&scene.subject, part).await;
        scene.quarantined += 1;
        scene.goes_on(number, what).await;
        match reason {
            "malformed" => malformed += 1,
            _ => unknown += 1,
        }
        expect_quarantined(&scene.stack, "malformed", malformed).await;
        expect_quarantined(&scene.stack, "unknown_encoding", unknown).await;
    }
    scene.end().await;
}

/// Invariant one-writer: a part of a lifetime that is not current, or of another writer, is not applied.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_whoever_puts_parts_into_the_topic() {
    let mut scene = Scene::start().await;

    // Of a session that nobody knows.
    let mut unknown = scene.subject.clone();
    unknown.session = uuid::Uuid::new_v4().to_string();
    scene
        .topic
        .put_part(&unknown, entry_part(&unknown, 1, b"{}\n"))
        .await;
    scene.quarantined += 1;
    scene.goes_on(0, "a part of an unknown session").await;
    expect_quarantined(&scene.stack, "unbound", 1).await;

    // Of lifetimes that nobody knows, not older than the current one.
    for (number, generation) in (1..).zip([1, 2, i64::MAX as u64]) {
        let part = EntryPart {
            lifetime_id: vec![3; 16].into(),
            generation,
            ..entry_part(&scene.subject, scene.subject.last_seq + 1, b"{\"unknown\":1}\n")
        };
        scene.topic.put_part(&scene.subject, part).await;
        scene.quarantined += 1;
        scene
            .goes_on(
                number,
                &format!("a part of an unknown lifetime, generation {generation}"),
            )
            .await;
        expect_quarantined(&scene.stack, "unbound", 1 + number).await;
    }

    // Of a second writer: the next entry, one that is there, one that is ahead.
    let second = new_nonce();
    for (number, seq) in (1..).zip([scene.subject.last_seq + 2, 1, 77]) {
        let nonce = Bytes::copy_from_slice(second.as_bytes());
        let part = EntryPart {
            writer_nonce: nonce,
            ..entry_part(&scene.subject, seq, b"{\"second\":1}\n")
        };
        scene.topic.put_part(&scene.subject, part).await;
        scene.quarantined += 1;
        scene
            .goes_on(3 + number, &format!("entry {seq} of a second writer"))
            .await;
        expect_quarantined(&scene.stack, "second_writer", number).await;
    }

    // Of the writer itself, once more and too early: nothing to put aside.
    let first = scene
        .subject
        .body
        .split_inclusive(|byte| *byte == b'\n')
        .next()
        .expect("a line")
        .to_vec();
    let part = EntryPart {
        checkpoint: true,
        ..entry_part(&scene.subject, 1, &first)
    };
    scene.topic.put_part(&scene.subject, part).await;
    scene.goes_on(6, "the first entry again").await;
    expect_outcome(&scene.stack, "duplicate", 1).await;
    for (number, ahead) in (1..).zip([2, 1000]) {
        let part = entry_part(&scene.subject, scene.subject.last_seq + ahead, b"{\"ahead\":1}\n");
        scene.topic.put_part(&scene.subject, part).await;
        scene.goes_on(6, &format!("an entry {ahead} ahead")).await;
        expect_outcome(&scene.stack, "gap", number).await;
    }

    // Of a lifetime that was superseded, which left an entry unfinished.
    let old = scene.subject.clone();
    scene
        .topic
        .put_part(&old, first_part(&old, old.last_seq + 1, b'u'))
        .await;
    scene.subject.attach_anew(&scene.connection).await;
    let spoils: [(&str, Spoil); 3] = [
        ("the next entry of a superseded lifetime", |_| {}),
        ("an entry that a superseded lifetime had written", |part| {
            part.lifetime_seq = 1
        }),
        ("an entry ahead of a superseded lifetime", |part| {
            part.lifetime_seq += 5
        }),
    ];
    for (number, (what, spoil)) in (1..).zip(spoils) {
        let mut part = entry_part(&old, old.last_seq + 1, b"{\"fenced\":1}\n");
        spoil(&mut part);
        scene
            .topic
            .put_record(old.partition, &old.session, Record::EntryPart(part))
            .await;
        scene.quarantined += 1;
        scene.goes_on(6 + number, what).await;
        expect_quarantined(&scene.stack, "fenced", number).await;
    }
    scene.end().await;
}
