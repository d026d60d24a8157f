//! The window of a fence: the persister is far behind, and the writer of a session that is being resumed goes on.

use std::time::{Duration, Instant};

use bytes::Bytes;
use wakelog_client::new_nonce;
use wakelog_proto::v1::{AckLevel, RefusalReason};

use crate::frozen_persister::wait_until_stopped;
use crate::stops_and_verifies;
use crate::support::native::{Kind, NativeStack};
use crate::support::session::{attach_first, describe, export, open, resume, writer};
use crate::support::{PATIENCE, within};

/// With fences older than this a relay gives no `LOG` ack (DESIGN 4). It reads them every second.
const WINDOW_BOUND: Duration = Duration::from_secs(30);

/// How long no ack may come before the test believes that none will.
const SILENCE: Duration = Duration::from_secs(5);

/// Invariants acked-is-durable, one-writer: once the relay has read the fences, the old writer gets `STORE` acks only, which do
/// not come while nobody folds. What got a `LOG` ack in the window is quarantined and counted, and the resumed body is without
/// it. That the persister is far behind is made by killing it once the resume has passed the partition's end.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_while_the_persister_is_far_behind() {
    let mut stack = NativeStack::prepare().await;
    // The first pass is the writer's own attachment.
    stack.set_of(
        Kind::Reconstruct,
        0,
        "WAKELOG_TEST_FREEZE",
        "reconstructor::after_raise:2",
    );
    stack.up().await;
    let connection = stack.connect().await;
    let session = open(&connection, "behind").await;
    let nonce = new_nonce();
    let lifetime = attach_first(&connection, &session, nonce)
        .await
        .expect("it attaches");
    let mut old = writer(&connection, &lifetime, nonce, AckLevel::Log)
        .await
        .expect("it writes");
    old.append(Bytes::from_static(b"{\"header\":1}\n"), true)
        .await
        .expect("an append");
    within("a drain", old.drain()).await.expect("a drain");

    let resuming = tokio::spawn({
        let (connection, session) = (connection.clone(), session.clone());
        async move { resume(&connection, &session, "the-resume").await }
    });
    let reconstructor = stack.pid(Kind::Reconstruct, 0);
    wait_until_stopped(reconstructor, "after the raise").await;
    stack.kill(Kind::Persist, 0);
    stack.kill(Kind::Persist, 1);
    stack.signal(Kind::Reconstruct, 0, "CONT");

    let (begun, mut in_window, mut last_ack) = (Instant::now(), 0_u64, Duration::ZERO);
    loop {
        old.append(Bytes::from_static(b"{\"late\":1}\n"), false)
            .await
            .expect("an append");
        match tokio::time::timeout(SILENCE, old.drain()).await {
            Ok(acked) => {
                assert_eq!(acked.expect("a drain").ack_level, AckLevel::Log, "nobody folds");
                in_window += 1;
                last_ack = begun.elapsed();
            }
            Err(_) => break,
        }
        assert!(begun.elapsed() < WINDOW_BOUND, "LOG acks go on after the bound");
    }
    eprintln!("{in_window} LOG acks fell into the window, the last one {last_ack:?} after the raise");
    let late = resuming
        .await
        .expect("no panic")
        .expect_err("nobody folds the bind in time");
    assert!(
        matches!(
            &late,
            wakelog_client::Error::Refused {
                code: tonic::Code::Unavailable,
                ..
            }
        ),
        "a resume that waits for the persister says so: {late}"
    );

    stack.start(Kind::Persist, 0).await;
    stack.start(Kind::Persist, 1).await;
    // The bind is in the log: the same request finds it.
    let resumed = resume(&connection, &session, "the-resume").await;
    let (new, body) = resumed.expect("the persister is back");
    assert_eq!(new.generation, 2);
    let refused = within("the old writer's end", old.drain())
        .await
        .expect_err("it is fenced");
    assert_eq!(
        refused.refusal_reason(),
        Some(RefusalReason::Superseded),
        "{refused}"
    );

    let (_, exported) = export(&connection, &session).await.expect("an export");
    assert!(exported == body, "nothing of the old writer came after the bind");
    let text = String::from_utf8(body).expect("text");
    let before_bind = text.matches("late").count() as u64;
    let quarantined = wait_for_quarantine(&connection, &session, in_window + 1 - before_bind).await;
    assert!(
        quarantined + before_bind >= in_window,
        "{in_window} LOG acks, {before_bind} before the bind and {quarantined} in quarantine"
    );
    stops_and_verifies(&mut stack, "after the window");
}

/// Waits until so many records of a session are in quarantine: they come after the bind.
async fn wait_for_quarantine(connection: &wakelog_client::Connection, session: &str, records: u64) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let described = describe(connection, session).await.expect("described");
        if described.quarantined_records >= records || Instant::now() > deadline {
            return described.quarantined_records;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
