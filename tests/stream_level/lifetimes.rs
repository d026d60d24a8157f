//! Who may write: racing resumes, restarted agents, superseded writers, retried starts (invariant one-writer).

use bytes::Bytes;
use tonic::Code;
use wakelog_client::{Error, new_nonce};
use wakelog_proto::v1::{AckLevel, RefusalReason};

use crate::support::session::{attach, describe, export, open_and_attach, resume, stop, writer};
use crate::support::stack::Stack;
use crate::support::within;

fn code_of(error: &Error) -> Option<Code> {
    match error {
        Error::Refused { code, .. } => Some(*code),
        _ => None,
    }
}

/// Exactly one of the resumes that start together wins; the others are told that they may try again.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_of_resumes_that_race() {
    let mut stack = Stack::start().await;
    let connection = stack.connect().await;
    let (lifetime, mut first) = open_and_attach(&connection, "race", AckLevel::Store).await;
    first
        .append(Bytes::from_static(b"{\"a\":1}\n"), true)
        .await
        .unwrap();
    within("a drain", first.drain()).await.unwrap();
    let mut wins_so_far = 1;
    for round in 0..5 {
        let racers = (0..6).map(|racer| {
            let (connection, session) = (connection.clone(), lifetime.session_id.clone());
            tokio::spawn(async move { resume(&connection, &session, &format!("race-{round}-{racer}")).await })
        });
        let mut won = Vec::new();
        for racer in racers.collect::<Vec<_>>() {
            match racer.await.unwrap() {
                Ok((lifetime, body)) => {
                    assert_eq!(body, b"{\"a\":1}\n");
                    won.push(lifetime.generation);
                }
                Err(error) => {
                    let code = code_of(&error);
                    // Lost the bind, or won it and was superseded before its body was closed by one that began later.
                    assert!(
                        matches!(code, Some(Code::Aborted | Code::FailedPrecondition)),
                        "round {round}: {error}"
                    );
                }
            }
        }
        assert!(!won.is_empty(), "round {round}: nobody won\n{}", stack.log());
        let current = describe(&connection, &lifetime.session_id).await.unwrap();
        let generations: Vec<u64> = current
            .lifetimes
            .iter()
            .map(|lifetime| lifetime.generation)
            .collect();
        let expected: Vec<u64> = (1..=generations.len() as u64).rev().collect();
        assert_eq!(generations, expected, "each generation was won once");
        assert!(generations.len() as u64 > wins_so_far);
        wins_so_far = generations.len() as u64;
    }
    assert!(stack.stop().success());
    stack.verify();
}

/// A container that was superseded is refused for good, also with a new writer, and leaves the new one alone.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_after_a_take_over() {
    let mut stack = Stack::start().await;
    let connection = stack.connect().await;
    // `STORE`: a `LOG` ack can't see a bind until the fences are read again.
    let (old, mut zombie) = open_and_attach(&connection, "take-over", AckLevel::Store).await;
    zombie
        .append(Bytes::from_static(b"{\"header\":1}\n"), true)
        .await
        .unwrap();
    within("a drain", zombie.drain()).await.unwrap();

    let (new, body) = resume(&connection, &old.session_id, "container-b").await.unwrap();
    assert_eq!(body, b"{\"header\":1}\n");
    let nonce = new_nonce();
    let mut successor = writer(&connection, &new, nonce, AckLevel::Store).await.unwrap();
    successor
        .append(Bytes::from_static(b"{\"b\":1}\n"), false)
        .await
        .unwrap();
    within("a drain", successor.drain()).await.unwrap();

    let refused = async {
        zombie
            .append(Bytes::from_static(b"{\"zombie\":1}\n"), false)
            .await?;
        zombie.drain().await
    };
    let refused = within("the zombie's answer", refused)
        .await
        .expect_err("the zombie may not write");
    assert_eq!(
        refused.refusal_reason(),
        Some(RefusalReason::Superseded),
        "{refused}"
    );

    let again = attach(
        &connection,
        &old.session_id,
        new_nonce(),
        old.lifetime_id.clone(),
        false,
    )
    .await;
    let again = again.expect_err("a superseded container can't take the session back");
    assert_eq!(again.code(), Code::FailedPrecondition, "{again}");

    successor
        .append(Bytes::from_static(b"{\"b\":2}\n"), false)
        .await
        .unwrap();
    within("a drain", successor.drain()).await.unwrap();
    let (_, body) = export(&connection, &old.session_id).await.unwrap();
    assert_eq!(body, b"{\"header\":1}\n{\"b\":1}\n{\"b\":2}\n");
    assert!(stack.stop().success());
    stack.verify();
}

/// An agent that restarts inside its container names its last lifetime, becomes the next one, and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn no_silent_gap_when_an_agent_restarts_in_its_container() {
    let mut stack = Stack::start().await;
    let connection = stack.connect().await;
    let (mut last, mut agent) = open_and_attach(&connection, "restarts", AckLevel::Log).await;
    let mut expected = b"{\"run\":1}\n".to_vec();
    agent.append(Bytes::from(expected.clone()), true).await.unwrap();
    within("a drain", agent.drain()).await.unwrap();
    for run in 2..5 {
        drop(agent);
        let nonce = new_nonce();
        last = attach(
            &connection,
            &last.session_id,
            nonce,
            last.lifetime_id.clone(),
            false,
        )
        .await
        .unwrap();
        assert_eq!(last.generation, run);
        // The gateway asks again for the same writer, since it lost the first answer: the same lifetime.
        let again = attach(
            &connection,
            &last.session_id,
            nonce,
            last.lifetime_id.clone(),
            false,
        )
        .await
        .unwrap();
        assert_eq!(again.lifetime_id, last.lifetime_id);
        agent = writer(&connection, &last, nonce, AckLevel::Log).await.unwrap();
        expected.extend_from_slice(format!("{{\"run\":{run}}}\n").as_bytes());
        agent.append(Bytes::from(expected.clone()), true).await.unwrap();
        within("a drain", agent.drain()).await.unwrap();
    }
    let (_, body) = export(&connection, &last.session_id).await.unwrap();
    assert_eq!(body, expected);
    assert!(stack.stop().success());
    stack.verify();
}

/// A start that is asked again, because its answer was lost, is the same start: same lifetime, same body, also after the
/// lifetime has written. After it was superseded the same request is refused for good.
#[tokio::test(flavor = "multi_thread")]
async fn resume_is_current_when_a_start_is_retried() {
    let mut stack = Stack::start().await;
    let connection = stack.connect().await;
    let (first, mut agent) = open_and_attach(&connection, "retry", AckLevel::Store).await;
    agent
        .append(Bytes::from_static(b"{\"a\":1}\n"), true)
        .await
        .unwrap();
    within("a drain", agent.drain()).await.unwrap();
    let session = first.session_id;

    let (lifetime, body) = resume(&connection, &session, "the-start").await.unwrap();
    let (again, same) = resume(&connection, &session, "the-start").await.unwrap();
    assert_eq!(
        (again.lifetime_id, same),
        (lifetime.lifetime_id.clone(), body.clone())
    );

    let mut agent = writer(&connection, &lifetime, new_nonce(), AckLevel::Store)
        .await
        .unwrap();
    agent
        .append(Bytes::from_static(b"{\"whole\":\"new\"}\n"), true)
        .await
        .unwrap();
    within("a drain", agent.drain()).await.unwrap();
    let (again, same) = resume(&connection, &session, "the-start").await.unwrap();
    assert_eq!(
        (again.lifetime_id, same),
        (lifetime.lifetime_id.clone(), body),
        "the body is fixed by the bind"
    );

    let (_, current) = resume(&connection, &session, "another-start").await.unwrap();
    assert_eq!(current, b"{\"whole\":\"new\"}\n");
    let refused = resume(&connection, &session, "the-start")
        .await
        .expect_err("it was superseded");
    assert_eq!(
        refused.refusal_reason(),
        Some(RefusalReason::Superseded),
        "{refused}"
    );
    assert_eq!(code_of(&refused), Some(Code::FailedPrecondition));
    assert!(stack.stop().success());
    stack.verify();
}

/// The window of a fence: a superseded writer may get `LOG` acks until the relay reads the fences again, which is within
/// seconds; what it wrote is quarantined, and never in a body.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_in_the_window_of_a_fence() {
    let mut stack = Stack::start().await;
    let connection = stack.connect().await;
    let (old, mut zombie) = open_and_attach(&connection, "window", AckLevel::Log).await;
    zombie
        .append(Bytes::from_static(b"{\"header\":1}\n"), true)
        .await
        .unwrap();
    within("a drain", zombie.drain()).await.unwrap();
    let (_, body) = resume(&connection, &old.session_id, "container-b").await.unwrap();
    let mut in_window = 0;
    let refused = within("the refusal", async {
        loop {
            let late = async {
                zombie
                    .append(Bytes::from_static(b"{\"zombie\":1}\n"), false)
                    .await?;
                zombie.drain().await
            };
            match late.await {
                Ok(_) => in_window += 1,
                Err(refused) => return refused,
            }
        }
    })
    .await;
    assert_eq!(
        refused.refusal_reason(),
        Some(RefusalReason::Superseded),
        "{refused}"
    );
    let (_, exported) = export(&connection, &old.session_id).await.unwrap();
    assert_eq!(exported, body, "nothing of the superseded lifetime is in a body");
    let quarantined = describe(&connection, &old.session_id)
        .await
        .unwrap()
        .quarantined_records;
    assert!(
        quarantined >= in_window,
        "{in_window} were acknowledged in the window, {quarantined} are in quarantine"
    );
    assert!(stack.stop().success());
    stack.verify();
}

/// What was acknowledged before the end counts; frames after it are refused.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_when_a_lifetime_ends() {
    let mut stack = Stack::start().await;
    let connection = stack.connect().await;
    let (lifetime, mut agent) = open_and_attach(&connection, "ends", AckLevel::Log).await;
    agent
        .append(Bytes::from_static(b"{\"a\":1}\n"), true)
        .await
        .unwrap();
    within("a drain", agent.drain()).await.unwrap();
    assert_eq!(stop(&connection, &lifetime).await.unwrap(), 1);
    assert_eq!(
        stop(&connection, &lifetime).await.unwrap(),
        1,
        "ending twice is ending once"
    );
    // Until the relay reads the fences again it may still take frames; what it acknowledges counts.
    let mut expected = b"{\"a\":1}\n".to_vec();
    let refused = within("the refusal", async {
        loop {
            let late = async {
                agent.append(Bytes::from_static(b"{\"late\":1}\n"), false).await?;
                agent.drain().await
            };
            match late.await {
                Ok(_) => expected.extend_from_slice(b"{\"late\":1}\n"),
                Err(refused) => return refused,
            }
        }
    })
    .await;
    assert_eq!(
        refused.refusal_reason(),
        Some(RefusalReason::LifetimeEnded),
        "{refused}"
    );
    let (_, body) = export(&connection, &lifetime.session_id).await.unwrap();
    assert_eq!(body, expected);
    assert!(stack.stop().success());
    stack.verify();
}
