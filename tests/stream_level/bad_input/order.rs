//! An entry after those before it.

use wakelog_client::new_nonce;
use wakelog_proto::v1::{AckLevel, RefusalReason};

use super::Scene;
use crate::support::refusal::refused;
use crate::support::relay::{commit, entry_of, frame, post, stream_left_open, stream_whole};

/// Entries whose hash is remembered, by the contract.
const REMEMBERED: u64 = 256;

/// Invariant no-silent-gap: an entry that is ahead is refused with the number that would have been right.
#[tokio::test(flavor = "multi_thread")]
async fn no_silent_gap_before_an_entry_that_is_ahead() {
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    for ahead in [
        2,
        3,
        1000,
        u64::from(u32::MAX),
        i64::MAX as u64 - 10,
        u64::MAX - 10,
    ] {
        let seq = scene.subject.last_seq + ahead;
        let next = scene.subject.last_seq + 1;
        let what = format!("entry {seq} where {next} is next");
        let frame = scene.subject.frame(seq, b"ahead\n");
        assert_eq!(
            scene.refuses(&what, &frame, RefusalReason::Gap).await.expected,
            next,
            "{what}"
        );
        let messages = scene.subject.entry_stream(seq, false, b"ahead\n");
        let streamed = stream_left_open(&connection, Some(scene.subject.token()), messages).await;
        assert_eq!(
            refused(&what, streamed, RefusalReason::Gap).expected,
            next,
            "{what}"
        );
        scene.undisturbed(&what).await;
    }
    scene.end().await;
}

/// Invariant exactly-once-fold: the same bytes again are the same entry; other bytes are refused before they are published,
/// and the lifetime goes on.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_of_an_entry_that_comes_again() {
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    let large: Vec<u8> = (0..1_300_000_u32).map(|at| (at / 7) as u8).collect();
    scene.subject.write(&connection, b"{\"small\":true}\n").await;
    scene.subject.write_parts(&connection, &large).await;

    for round in 0..2 {
        let subject = &scene.subject;
        let token = Some(subject.token());
        for (seq, entry) in [(2, b"{\"small\":true}\n".as_slice()), (3, &large)] {
            let same = subject.frame(seq, entry);
            for answer in [
                commit(&connection, token, &same).await,
                post(&connection, token, &same).await,
            ] {
                assert_eq!(
                    answer.expect("the same entry again"),
                    (seq, AckLevel::Store),
                    "round {round}"
                );
            }
            let streamed = stream_whole(&connection, token, subject.entry_stream(seq, false, entry)).await;
            assert_eq!(streamed.expect("the same entry again").0, seq, "round {round}");

            let mut one_bit = entry.to_vec();
            *one_bit.last_mut().expect("a byte") ^= 1;
            let others = [
                ("a bit flipped", false, one_bit),
                ("a byte less", false, entry[1..].to_vec()),
                ("a byte more", false, [entry, b"\n"].concat()),
                ("twice", false, entry.repeat(2)),
                ("as a checkpoint", true, entry.to_vec()),
            ];
            for (what, checkpoint, other) in others {
                let what = format!("round {round}, entry {seq} {what}");
                let mut frame = subject.frame(seq, &other);
                entry_of(&mut frame).checkpoint = checkpoint;
                scene.refuses(&what, &frame, RefusalReason::Conflict).await;
                let messages = subject.entry_stream(seq, checkpoint, &other);
                let streamed = stream_left_open(&connection, token, messages).await;
                refused(&what, streamed, RefusalReason::Conflict);
            }
        }
        scene.undisturbed(&format!("repeats, round {round}")).await;
    }

    // Older than what is remembered: whatever its bytes, it is taken for the same, and nothing is stored.
    let messages = {
        let mut messages = scene
            .subject
            .entry_stream(scene.subject.last_seq + 1, false, b"window\n");
        for seq in scene.subject.last_seq + 2..=scene.subject.last_seq + REMEMBERED {
            messages.extend(
                scene
                    .subject
                    .entry_stream(seq, false, b"window\n")
                    .into_iter()
                    .skip(1),
            );
        }
        messages
    };
    let acked = stream_whole(&connection, Some(scene.subject.token()), messages)
        .await
        .expect("a window of entries");
    assert_eq!(acked.0, scene.subject.last_seq + REMEMBERED);
    scene.subject.last_seq += REMEMBERED;
    scene.subject.body.extend(b"window\n".repeat(REMEMBERED as usize));
    let old = scene.subject.frame(2, b"other bytes, too old to tell\n");
    let answer = commit(&connection, Some(scene.subject.token()), &old)
        .await
        .expect("taken for the same");
    assert_eq!(answer.0, 2);
    scene.undisturbed("a repeat older than the window").await;
    scene.end().await;
}

/// Invariant one-writer: with another nonce nobody writes in a lifetime, and the first writer does not notice.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_of_two_nonces_in_a_lifetime() {
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    let other = new_nonce();
    for seq in [1, 2, 3, 1000] {
        let what = format!("entry {seq} of a second writer");
        let frame = frame(&scene.subject.session, other, seq, b"second\n");
        scene.refuses(&what, &frame, RefusalReason::SecondWriter).await;
        let mut second = scene.subject.clone();
        second.nonce = other;
        let messages = second.entry_stream(seq, false, b"second\n");
        let streamed = stream_left_open(&connection, Some(second.token()), messages).await;
        refused(&what, streamed, RefusalReason::SecondWriter);
    }
    scene.undisturbed("a second writer").await;
    scene.end().await;
}
