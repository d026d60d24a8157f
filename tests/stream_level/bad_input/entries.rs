//! A frame by itself.

use bytes::Bytes;
use tonic::Code;
use wakelog_proto::v1::agent_frame::Frame;
use wakelog_proto::v1::{AgentFrame, CommitConversationFrameRequest, RefusalReason, SessionEvent};

use super::Scene;
use crate::support::relay::{commit, entry_of, post};

/// The largest entry of a unary call, by the contract.
const UNARY_LIMIT: usize = 4 * 1024 * 1024;

/// Every frame that is wrong by itself is refused for its reason, by both calls, and is not published.
#[tokio::test(flavor = "multi_thread")]
async fn frames_that_are_malformed_are_refused() {
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    let good = scene.subject.next_frame();
    let with = |change: &dyn Fn(&mut CommitConversationFrameRequest)| {
        let mut frame = good.clone();
        change(&mut frame);
        frame
    };

    let empty = with(&|frame| entry_of(frame).entry = Bytes::new());
    scene
        .refuses("an empty entry", &empty, RefusalReason::EmptyEntry)
        .await;
    let too_large = with(&|frame| entry_of(frame).entry = vec![b'x'; UNARY_LIMIT + 1].into());
    let refusal = scene
        .refuses("a byte too many", &too_large, RefusalReason::TooLarge)
        .await;
    assert_eq!(refusal.limit, UNARY_LIMIT as u64);
    scene
        .undisturbed("entries of no size and of too large a size")
        .await;

    let nonce = hex::encode(scene.subject.nonce.as_bytes());
    let good = scene.subject.next_frame();
    let seq = scene.subject.last_seq + 1;
    let keys = [
        String::new(),
        nonce.clone(),
        format!("{nonce}-"),
        format!("-{seq}"),
        format!("{nonce}{seq}"),
        format!("{nonce}-{seq} "),
        format!("{nonce}-0{seq}"),
        format!("{nonce}-+{seq}"),
        format!("{nonce}--{seq}"),
        format!("{nonce}-{seq}\0"),
        format!(
            "{}-{seq}",
            nonce.to_uppercase().replace(|c: char| c.is_ascii_digit(), "A")
        ),
        format!("{}-{seq}", &nonce[2..]),
        format!("{nonce}00-{seq}"),
        format!("{}-{seq}", "g".repeat(32)),
        format!("{nonce}-18446744073709551616"),
        "k".repeat(100_000),
        // Well-formed, and not this frame's.
        format!("{nonce}-{}", seq + 1),
        format!("{nonce}-0"),
    ];
    for key in keys {
        let mut frame = good.clone();
        frame.idempotency_key = key.clone();
        let what = format!("idempotency key {:?}", key.chars().take(60).collect::<String>());
        scene.refuses(&what, &frame, RefusalReason::Malformed).await;
    }

    let mut zero = scene.subject.frame(0, b"zero\n");
    scene.refuses("entry 0", &zero, RefusalReason::Malformed).await;
    zero.idempotency_key = good.idempotency_key.clone();
    scene
        .refuses("entry 0 with the key of another", &zero, RefusalReason::Malformed)
        .await;

    let event = SessionEvent {
        event: Bytes::from_static(b"{}"),
    };
    let mut frame = good.clone();
    frame.frame = Some(AgentFrame {
        frame: Some(Frame::Session(event)),
    });
    scene
        .refuses("a live event", &frame, RefusalReason::Malformed)
        .await;
    frame.frame = Some(AgentFrame { frame: None });
    scene
        .refuses("an empty frame", &frame, RefusalReason::Malformed)
        .await;
    frame.frame = None;
    scene.refuses("no frame", &frame, RefusalReason::Malformed).await;
    let mut level = good.clone();
    level.ack_level = 77;
    scene
        .refuses("an unknown ack level", &level, RefusalReason::Malformed)
        .await;
    scene.undisturbed("malformed frames").await;

    // What is too large for the transport is refused before anybody reads it, so it has no refusal with it; it must be
    // final all the same.
    let huge = scene
        .subject
        .frame(scene.subject.last_seq + 1, &vec![b'x'; 6 * 1024 * 1024]);
    let token = Some(scene.subject.token());
    for answer in [
        commit(&connection, token, &huge).await,
        post(&connection, token, &huge).await,
    ] {
        let status = answer.expect_err("6 MiB in one message");
        assert!(
            matches!(status.code(), Code::OutOfRange | Code::InvalidArgument),
            "{status}"
        );
    }
    scene.undisturbed("entries that no message can carry").await;

    let largest = vec![b'x'; UNARY_LIMIT];
    scene.subject.write(&connection, &largest).await;
    scene.undisturbed("the largest entry of a unary call").await;
    scene.end().await;
}
