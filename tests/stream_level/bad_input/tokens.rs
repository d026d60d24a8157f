//! Who writes.

use bytes::Bytes;
use wakelog_client::new_nonce;
use wakelog_contract::TokenSigner;
use wakelog_proto::v1::{LifetimeGrant, LifetimeTokenClaims, RefusalReason};

use super::Scene;
use crate::support::refusal::refused;
use crate::support::relay::{commit, entry_of, post, renew, stream_left_open};
use crate::support::session::{attach, stop};
use crate::support::subject::Subject;

/// The account of the token that `wakelog up` draws.
const ACCOUNT: &str = "local";

/// A token that is signed as the stack signs, with any expiry.
fn signed(scene: &Scene, lifetime: &LifetimeGrant, expires_at_ms: u64) -> String {
    let key = scene.stack.token_key();
    let claims = LifetimeTokenClaims {
        session_id: lifetime.session_id.clone(),
        lifetime_id: lifetime.lifetime_id.clone(),
        generation: lifetime.generation,
        partition: scene.subject.partition,
        expires_at_ms,
        account: ACCOUNT.to_owned(),
    };
    TokenSigner::new(&key).expect("a key").sign(&claims)
}

/// Every call of the durable lane refuses the subject's next entry for this reason.
async fn refused_everywhere(scene: &Scene, what: &str, token: Option<&str>, reason: RefusalReason) -> u64 {
    let (connection, subject) = (&scene.connection, &scene.subject);
    // The stream first: it reads how the lifetime stands when it opens, and what the relay knows only admits.
    let messages = subject.entry_stream(subject.last_seq + 1, false, b"{\"streamed\":true}\n");
    let streamed = refused(what, stream_left_open(connection, token, messages).await, reason);
    let frame = subject.next_frame();
    let committed = refused(what, commit(connection, token, &frame).await, reason);
    let posted = refused(what, post(connection, token, &frame).await, reason);
    assert_eq!(
        (&posted, &streamed),
        (&committed, &committed),
        "{what}: all calls answer the same"
    );
    committed.expected
}

/// Invariant one-writer: without the lifetime's own token nobody writes in it.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_by_a_token_of_its_own() {
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    let good = scene.subject.token().to_owned();

    refused_everywhere(&scene, "no token", None, RefusalReason::TokenMissing).await;
    refused(
        "a renewal without a token",
        renew(&connection, None).await,
        RefusalReason::TokenMissing,
    );

    let of_another_key = {
        let claims = LifetimeTokenClaims {
            session_id: scene.subject.session.clone(),
            lifetime_id: scene.subject.lifetime.lifetime_id.clone(),
            generation: 1,
            partition: scene.subject.partition,
            expires_at_ms: u64::MAX,
            account: ACCOUNT.to_owned(),
        };
        TokenSigner::new(&[7; 32]).expect("a key").sign(&claims)
    };
    let (claims, mac) = good.split_once('.').expect("claims and their MAC");
    let mut forged = vec![
        (
            "an unknown one".to_owned(),
            "0123456789abcdef0123456789abcdef".to_owned(),
        ),
        ("a caller token".to_owned(), scene.stack.token()),
        ("one of another key".to_owned(), of_another_key),
        ("one without a MAC".to_owned(), claims.to_owned()),
        ("one with an empty MAC".to_owned(), format!("{claims}.")),
        ("one without claims".to_owned(), format!(".{mac}")),
        ("one with more behind it".to_owned(), format!("{good}A")),
        ("a long one".to_owned(), "A".repeat(4000)),
    ];
    for at in 0..good.len() {
        let mut bytes = good.clone().into_bytes();
        bytes[at] ^= 1;
        let flipped = String::from_utf8(bytes).expect("text");
        forged.push((format!("one with a bit of byte {at} flipped"), flipped));
    }
    for (what, token) in &forged {
        refused_everywhere(&scene, what, Some(token), RefusalReason::TokenForged).await;
        refused(
            what,
            renew(&connection, Some(token)).await,
            RefusalReason::TokenForged,
        );
    }
    scene.undisturbed("forged tokens").await;

    let stranger = Subject::open(&connection, "stranger").await;
    let frame = scene.subject.next_frame();
    let token = Some(stranger.token());
    refused(
        "a foreign token",
        commit(&connection, token, &frame).await,
        RefusalReason::TokenForeign,
    );
    let messages = scene
        .subject
        .entry_stream(scene.subject.last_seq + 1, false, b"foreign\n");
    let streamed = stream_left_open(&connection, token, messages).await;
    refused("a foreign token", streamed, RefusalReason::TokenForeign);
    stranger
        .check(&connection, "its token was used for another session")
        .await;

    let mut unknown = scene.subject.lifetime.clone();
    unknown.lifetime_id = Bytes::from_static(&[9; 16]);
    let unknown = signed(&scene, &unknown, u64::MAX);
    let answer = commit(&connection, Some(&unknown), &frame).await;
    refused("a token for no lifetime", answer, RefusalReason::SessionNotFound);
    scene.undisturbed("foreign tokens").await;

    let expired = signed(&scene, &scene.subject.lifetime, 1);
    refused_everywhere(
        &scene,
        "an expired token",
        Some(&expired),
        RefusalReason::TokenExpired,
    )
    .await;
    let renewed = renew(&connection, Some(&expired))
        .await
        .expect("a current lifetime may renew");
    assert_eq!(renewed.lifetime_id, scene.subject.lifetime.lifetime_id);
    assert_eq!(
        (renewed.generation, renewed.applied_entry_seq),
        (1, scene.subject.last_seq)
    );
    assert_ne!(renewed.token, expired);
    scene.subject.lifetime = renewed;
    scene.undisturbed("an expired token and its renewal").await;
    scene.end().await;
}

/// Invariant one-writer: the token of a superseded or an ended lifetime is good for nothing, for good.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_when_a_token_is_fenced() {
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    let old = scene.subject.clone();
    let expired = signed(&scene, &old.lifetime, 1);

    let nonce = new_nonce();
    let new = attach(&connection, &old.session, nonce, Bytes::new(), true)
        .await
        .expect("a take-over");
    let expected = refused_everywhere(
        &scene,
        "a fenced token",
        Some(old.token()),
        RefusalReason::Superseded,
    )
    .await;
    assert_eq!(expected, 2, "the refusal names the current generation");
    let mut repeat = old.frame(1, &old.body);
    entry_of(&mut repeat).checkpoint = true;
    let answer = commit(&connection, Some(old.token()), &repeat).await;
    refused("a repeat with a fenced token", answer, RefusalReason::Superseded);
    for (what, token) in [
        ("its renewal", old.token()),
        ("its renewal when expired", &expired),
    ] {
        let refusal = refused(
            what,
            renew(&connection, Some(token)).await,
            RefusalReason::Superseded,
        );
        assert_eq!(refusal.expected, 2, "{what}");
    }

    (
        scene.subject.lifetime,
        scene.subject.nonce,
        scene.subject.last_seq,
    ) = (new.clone(), nonce, 0);
    scene.undisturbed("a take-over").await;

    let last = scene.subject.last_seq;
    assert_eq!(stop(&connection, &new).await.expect("it ends"), new.base + last);
    // Ahead first: it makes the relay read the end, which it would else take note of within a second.
    let ahead = scene.subject.frame(last + 9, b"ahead\n");
    scene
        .refuses(
            "an entry ahead after the end",
            &ahead,
            RefusalReason::LifetimeEnded,
        )
        .await;
    refused_everywhere(
        &scene,
        "an entry after the end",
        Some(&new.token),
        RefusalReason::LifetimeEnded,
    )
    .await;
    refused(
        "a renewal after the end",
        renew(&connection, Some(&new.token)).await,
        RefusalReason::LifetimeEnded,
    );
    let again = scene
        .subject
        .frame(last, format!("{{\"after\":{:?}}}\n", "a take-over").as_bytes());
    let again = commit(&connection, Some(&new.token), &again)
        .await
        .expect("what was acknowledged stays so");
    assert_eq!(again.0, last);
    scene.subject.check(&connection, "after the end").await;
    scene.end().await;
}

/// Invariant acked-is-durable: right after the end of a lifetime a relay may not know of it yet. What it then acknowledges
/// counts; what it refuses does not.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_right_after_the_end() {
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    for round in 0..3 {
        let what = format!("round {round}");
        let subject = &mut scene.subject;
        subject.write(&connection, b"{\"before\":true}\n").await;
        stop(&connection, &subject.lifetime).await.expect("it ends");
        let late = subject.next_frame();
        let answer = commit(&connection, Some(subject.token()), &late).await;
        match answer {
            Ok((seq, _)) => {
                assert_eq!(seq, subject.last_seq + 1, "{what}");
                let mut late = late;
                subject.body.extend_from_slice(&entry_of(&mut late).entry);
            }
            answer => drop(refused(&what, answer, RefusalReason::LifetimeEnded)),
        }
        subject.check(&connection, &what).await;
        subject.attach_anew(&connection).await;
        scene.undisturbed(&what).await;
    }
    scene.end().await;
}
