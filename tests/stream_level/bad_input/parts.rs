//! A stream of parts by itself.

use bytes::Bytes;
use wakelog_proto::v1::commit_conversation_parts_request::Message;
use wakelog_proto::v1::{RefusalReason, TranscriptPart, WriterHello};

use super::Scene;
use crate::support::refusal::refused;
use crate::support::relay::{PART_BYTES, hello, stream_left_open, stream_whole};

fn part(entry_seq: u64, part: u32, last: bool, content: Vec<u8>) -> TranscriptPart {
    TranscriptPart {
        entry_seq,
        part,
        last,
        checkpoint: false,
        content: content.into(),
    }
}

fn full(byte: u8) -> Vec<u8> {
    vec![byte; PART_BYTES]
}

/// Every stream that is wrong by itself is refused for its reason at once. The entry that it broke off in goes on with the
/// same bytes.
#[tokio::test(flavor = "multi_thread")]
async fn parts_that_are_malformed_are_refused() {
    use RefusalReason::{EmptyEntry, Gap, Malformed, TooLarge};
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    let one_more = PART_BYTES + 1;
    type Case = (
        &'static str,
        RefusalReason,
        u64,
        Box<dyn Fn(u64) -> Vec<TranscriptPart>>,
    );
    let cases: Vec<Case> = vec![
        (
            "no byte",
            EmptyEntry,
            0,
            Box::new(|seq| vec![part(seq, 0, true, vec![])]),
        ),
        (
            "no byte, not last",
            Malformed,
            0,
            Box::new(|seq| vec![part(seq, 0, false, vec![])]),
        ),
        (
            "entry 0",
            Malformed,
            0,
            Box::new(|_| vec![part(0, 0, true, b"x".to_vec())]),
        ),
        (
            "a part too large",
            TooLarge,
            524_288,
            Box::new(move |seq| vec![part(seq, 0, true, vec![1; one_more])]),
        ),
        (
            "a part too large, not last",
            TooLarge,
            524_288,
            Box::new(move |seq| vec![part(seq, 0, false, vec![1; one_more])]),
        ),
        (
            "a part of 6 MiB",
            TooLarge,
            524_288,
            Box::new(|seq| vec![part(seq, 0, true, vec![1; 6 << 20])]),
        ),
        (
            "a short part that is not the last",
            Malformed,
            0,
            Box::new(|seq| vec![part(seq, 0, false, b"short".to_vec())]),
        ),
        (
            "part 1 first",
            Gap,
            0,
            Box::new(|seq| vec![part(seq, 1, false, full(b'a'))]),
        ),
        (
            "the largest part number first",
            Gap,
            0,
            Box::new(|seq| vec![part(seq, u32::MAX, true, b"x".to_vec())]),
        ),
        // From here on part 0 is good and is published.
        (
            "part 2 after 0",
            Gap,
            0,
            Box::new(|seq| vec![part(seq, 0, false, full(b'a')), part(seq, 2, true, b"x".to_vec())]),
        ),
        (
            "part 0 twice",
            Gap,
            0,
            Box::new(|seq| vec![part(seq, 0, false, full(b'a')), part(seq, 0, false, full(b'a'))]),
        ),
        (
            "an empty last part",
            Malformed,
            0,
            Box::new(|seq| vec![part(seq, 0, false, full(b'a')), part(seq, 1, true, vec![])]),
        ),
        (
            "a later part too large",
            TooLarge,
            524_288,
            Box::new(move |seq| {
                vec![
                    part(seq, 0, false, full(b'a')),
                    part(seq, 1, true, vec![1; one_more]),
                ]
            }),
        ),
        (
            "a later part too short",
            Malformed,
            0,
            Box::new(|seq| {
                vec![
                    part(seq, 0, false, full(b'a')),
                    part(seq, 1, false, b"short".to_vec()),
                ]
            }),
        ),
        (
            "the next entry inside an entry",
            Malformed,
            0,
            Box::new(|seq| {
                vec![
                    part(seq, 0, false, full(b'a')),
                    part(seq + 1, 0, true, b"x".to_vec()),
                ]
            }),
        ),
        (
            "another checkpoint flag",
            Malformed,
            0,
            Box::new(|seq| {
                let mut second = part(seq, 1, true, b"x".to_vec());
                second.checkpoint = true;
                vec![part(seq, 0, false, full(b'a')), second]
            }),
        ),
    ];
    for (what, reason, limit, parts) in cases {
        let seq = scene.subject.last_seq + 1;
        let opening = std::iter::once(hello(&scene.subject.session, scene.subject.nonce));
        let messages = opening.chain(parts(seq).into_iter().map(Message::Part)).collect();
        let answer = stream_left_open(&connection, Some(scene.subject.token()), messages).await;
        let refusal = refused(what, answer, reason);
        assert_eq!(refusal.limit, limit, "{what}");
        let expected = if reason == Gap { seq } else { 0 };
        assert_eq!(refusal.expected, expected, "{what}");
        let whole = [full(b'a'), b" and the rest\n".to_vec()].concat();
        scene.subject.write_parts(&connection, &whole).await;
        scene.undisturbed(what).await;
    }
    scene.end().await;
}

/// The same for what is around the parts.
#[tokio::test(flavor = "multi_thread")]
async fn streams_that_are_malformed_are_refused() {
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    let subject = scene.subject.clone();
    let token = Some(subject.token());
    let seq = subject.last_seq + 1;
    let greeting = || hello(&subject.session, subject.nonce);
    let with = |change: &dyn Fn(&mut WriterHello)| match greeting() {
        Message::Hello(mut hello) => {
            change(&mut hello);
            Message::Hello(hello)
        }
        other => other,
    };
    let open_ended = [
        (
            "a part before hello",
            vec![Message::Part(part(seq, 0, true, b"x".to_vec()))],
        ),
        ("hello twice", vec![greeting(), greeting()]),
        (
            "a nonce of 15 bytes",
            vec![with(&|hello| hello.writer_nonce = Bytes::from_static(&[1; 15]))],
        ),
        ("no nonce", vec![with(&|hello| hello.writer_nonce = Bytes::new())]),
        ("an unknown ack level", vec![with(&|hello| hello.ack_level = -5)]),
    ];
    for (what, messages) in open_ended {
        refused(
            what,
            stream_left_open(&connection, token, messages).await,
            RefusalReason::Malformed,
        );
    }
    for session in ["", "no session at all", "00000000-0000-0000-0000-000000000000"] {
        let messages = vec![with(&|hello| hello.session_id = session.to_owned())];
        let answer = stream_left_open(&connection, token, messages).await;
        refused(session, answer, RefusalReason::TokenForeign);
    }
    refused(
        "nothing",
        stream_whole(&connection, token, vec![]).await,
        RefusalReason::Malformed,
    );
    scene.undisturbed("streams that begin wrong").await;

    let seq = scene.subject.last_seq + 1;
    let broken_off = vec![greeting(), Message::Part(part(seq, 0, false, full(b'b')))];
    let answer = stream_whole(&connection, token, broken_off).await;
    refused("an end inside an entry", answer, RefusalReason::Malformed);
    let whole = [full(b'b'), full(b'c')].concat();
    scene.subject.write_parts(&connection, &whole).await;
    scene.undisturbed("a stream that broke off").await;
    scene.end().await;
}
