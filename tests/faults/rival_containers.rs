//! A container that was superseded, and its supervisor does not believe it; a reconstructor that dies on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tonic::Code;
use wakelog_client::{Connection, new_nonce};
use wakelog_proto::v1::{AckLevel, LifetimeGrant, RefusalReason};

use crate::frozen_persister::wait_until_stopped;
use crate::stops_and_verifies;
use crate::support::native::{Kind, NativeStack};
use crate::support::session::{attach, attach_first, describe, export, open, resume, writer};
use crate::support::{PATIENCE, within};

/// How often each supervisor starts its agent again.
const RESTARTS: u64 = 12;

/// Invariant one-writer: of two containers of one session, each with a supervisor that restarts its agent, the superseded one
/// is refused for good and the other one goes on. No attachment of the first one ever takes the session back.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_of_two_supervised_containers() {
    let mut stack = NativeStack::prepare().await;
    stack.up().await;
    let connection = stack.connect().await;
    let session = open(&connection, "supervised").await;
    let first = attach_first(&connection, &session, new_nonce())
        .await
        .expect("the first attaches");
    let first = run_agent(&connection, first, b"{\"first\":1}\n", true)
        .await
        .expect("it writes");

    let superseded = Arc::new(AtomicBool::new(false));
    let refusals = Arc::new(AtomicU64::new(0));
    let rival = tokio::spawn(supervise_the_superseded(
        connection.clone(),
        first,
        superseded.clone(),
        refusals.clone(),
    ));
    let (mut current, body) = resume_against_a_rival(&connection, &session).await;
    superseded.store(true, Ordering::SeqCst);
    let mut expected = body;
    let taken_at = current.generation;
    for run in 1..=RESTARTS {
        // As a tee does: a restarted agent names its last lifetime, and begins with its whole file.
        expected.extend_from_slice(format!("{{\"b\":{run}}}\n").as_bytes());
        if run > 1 {
            let last = current.lifetime_id.clone();
            current = attach(&connection, &session, new_nonce(), last, false)
                .await
                .unwrap_or_else(|status| panic!("run {run}: the current container is refused: {status}"));
        }
        assert_eq!(
            current.generation,
            taken_at + run - 1,
            "run {run}: somebody came between"
        );
        current = run_agent(&connection, current, &expected, true)
            .await
            .unwrap_or_else(|error| panic!("run {run}: {error}"));
        let (seen, bound) = (refusals.load(Ordering::SeqCst), Instant::now() + PATIENCE);
        while refusals.load(Ordering::SeqCst) == seen && Instant::now() < bound {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    rival.abort();
    if let Err(ended) = rival.await {
        assert!(ended.is_cancelled(), "the rival ended with {ended}");
    }
    assert!(
        refusals.load(Ordering::SeqCst) >= RESTARTS,
        "the rival went on trying"
    );
    let (_, exported) = export(&connection, &session).await.expect("an export");
    assert!(exported == expected, "the body is that of the current container");
    stops_and_verifies(&mut stack, "two supervisors");
}

/// A resume that loses its bind to the rival's agent is told that it may try again, and does.
async fn resume_against_a_rival(connection: &Connection, session: &str) -> (LifetimeGrant, Vec<u8>) {
    for attempt in 0..100 {
        match resume(connection, session, &format!("container-b-{attempt}")).await {
            Ok(resumed) => return resumed,
            Err(wakelog_client::Error::Refused {
                code: Code::Aborted, ..
            }) => {}
            Err(error) => panic!("attempt {attempt}: {error}"),
        }
    }
    panic!("every resume was lost");
}

/// Restarts its agent over and over, each time as the lifetime that this container knows. Before it is superseded it may win;
/// after that, never.
async fn supervise_the_superseded(
    connection: Connection,
    mut last: LifetimeGrant,
    superseded: Arc<AtomicBool>,
    refusals: Arc<AtomicU64>,
) {
    loop {
        let is_over = superseded.load(Ordering::SeqCst);
        let attached = attach(
            &connection,
            &last.session_id,
            new_nonce(),
            last.lifetime_id.clone(),
            false,
        )
        .await;
        match attached {
            Ok(lifetime) => {
                assert!(!is_over, "a superseded container took the session back");
                last = run_agent(&connection, lifetime.clone(), b"{\"first\":1}\n", true)
                    .await
                    .unwrap_or(lifetime);
            }
            Err(status) if is_over => {
                assert_eq!(status.code(), Code::FailedPrecondition, "it is final: {status}");
                refusals.fetch_add(1, Ordering::SeqCst);
            }
            Err(status) => assert!(
                matches!(status.code(), Code::FailedPrecondition | Code::Aborted),
                "{status}"
            ),
        }
        // What its dead agent's gateway still holds gets no further either.
        let zombie = run_agent(&connection, last.clone(), b"{\"zombie\":1}\n", false).await;
        if is_over {
            let refused = zombie.expect_err("a superseded lifetime may not write");
            assert_eq!(
                refused.refusal_reason(),
                Some(RefusalReason::Superseded),
                "{refused}"
            );
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// An agent that writes one entry, waits until the hot tail has it, and dies.
async fn run_agent(
    connection: &Connection,
    lifetime: LifetimeGrant,
    entry: &[u8],
    checkpoint: bool,
) -> Result<LifetimeGrant, wakelog_client::Error> {
    let mut agent = writer(connection, &lifetime, new_nonce(), AckLevel::Store).await?;
    agent.append(Bytes::copy_from_slice(entry), checkpoint).await?;
    within("an agent's entry", agent.drain()).await?;
    Ok(lifetime)
}

/// What becomes of a reconstructor that froze between the raise and its bind.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Dies,
    Wakes,
}

/// Invariants acked-is-durable, one-writer: a reconstructor dies after it has raised the binding generation and before it has
/// published its bind. The writer is held to `STORE` acks meanwhile; its `LOG` acks come back by themselves.
#[tokio::test(flavor = "multi_thread")]
async fn log_acks_come_back_after_a_bind_that_never_was() {
    a_bind_never_comes(Fate::Dies).await;
}

/// The same with one that wakes once `LOG` acks are back: its bind would quarantine what they acknowledged, so it never comes.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_when_a_late_reconstructor_wakes() {
    a_bind_never_comes(Fate::Wakes).await;
}

async fn a_bind_never_comes(fate: Fate) {
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
    let session = open(&connection, "raised").await;
    let nonce = new_nonce();
    let lifetime = attach_first(&connection, &session, nonce)
        .await
        .expect("it attaches");
    let mut agent = writer(&connection, &lifetime, nonce, AckLevel::Log)
        .await
        .expect("it writes");
    let mut body = Vec::new();
    let mut write = async |level: AckLevel| {
        let deadline = Instant::now() + PATIENCE;
        for number in 1.. {
            let entry = format!("{{\"{level:?}\":{number}}}\n");
            body.extend_from_slice(entry.as_bytes());
            agent.append(Bytes::from(entry), false).await.expect("an append");
            let acked = within("a drain", agent.drain()).await.expect("a drain");
            if acked.ack_level == level {
                break;
            }
            assert!(Instant::now() < deadline, "no {level:?} ack");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    write(AckLevel::Log).await;
    let dying = tokio::spawn({
        let (connection, session) = (connection.clone(), session.clone());
        async move { resume(&connection, &session, "dies").await }
    });
    wait_until_stopped(stack.pid(Kind::Reconstruct, 0), "after the raise").await;
    write(AckLevel::Store).await;
    write(AckLevel::Log).await;
    // One wakes too late, another one never does.
    match fate {
        Fate::Wakes => {
            stack.signal(Kind::Reconstruct, 0, "CONT");
            let late = dying.await.expect("no panic");
            let late = late.expect_err("it must not publish any more");
            assert_eq!(
                late.refusal_reason(),
                Some(RefusalReason::DependencyUnavailable),
                "{late}"
            );
        }
        Fate::Dies => {
            stack.kill(Kind::Reconstruct, 0);
            let died = dying.await.expect("no panic");
            died.expect_err("its reconstructor died");
        }
    }
    write(AckLevel::Log).await;

    let connection = stack.connect().await;
    let described = describe(&connection, &session).await.expect("described");
    assert_eq!(
        described.summary.expect("a summary").generation,
        1,
        "nothing was bound"
    );
    let (_, exported) = export(&connection, &session).await.expect("an export");
    assert!(exported == body, "everything that was acknowledged is there");
    stops_and_verifies(&mut stack, "after a bind that never was");
}
