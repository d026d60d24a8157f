//! Resumes, while what they read moves to the archive underneath.

use rand::Rng as _;
use wakelog_client::new_nonce;
use wakelog_proto::v1::AckLevel;

use crate::archive::{entry, reads, spliced, until};
use crate::holdings::{Holdings, segments_verify};
use crate::support::load::Loaded;
use crate::support::native::{Kind, NativeStack};
use crate::support::seed;
use crate::support::session::{begin_resume, resume};
use crate::support::within;
use crate::{bodies_are_right, stops_and_verifies};

/// Invariants resume-is-current, byte-exact, archived-is-complete: resumes whose body is still being read while their own
/// lifetime writes deltas and a checkpoint, and the archiver prunes underneath. Each body is exactly the one at its bind. Every
/// other one waits in its middle until what it still has to read is pruned. `WAKELOG_TEST_READS` says how many.
#[tokio::test(flavor = "multi_thread")]
async fn resume_is_current_while_its_own_lifetime_prunes_underneath() {
    let reads = reads();
    let seed = seed::seeds(1)[0];
    eprintln!("seed {seed}: WAKELOG_TEST_SEED={seed} replays it");
    let mut rng = seed::rng(seed);
    let mut stack = NativeStack::prepare().await;
    for number in 0..2 {
        let pages = "reconstructor::between_pages=sleep(150)";
        stack.set_of(Kind::Reconstruct, number, "FAILPOINTS", pages);
    }
    stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", "6000000");
    stack.up().await;
    // A session that moves to another archiver may be put by both, and one of the objects stays unrecorded.
    stack.wait_until_shared(Kind::Archive).await;
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "own-lifetime", AckLevel::Store).await;
    let id = session.lifetime.session_id.clone();
    let mut holdings = Holdings::of(&stack, &session).await;
    session.send(entry(1, 1_000, true)).await;
    let mut pruned_underneath = 0;
    for read in 0..reads {
        let context = format!("seed {seed}, read {read}");
        for _ in 0..rng.random_range(40..60) {
            let number = session.sent.entries.len() as u64 + 1;
            session.send(entry(number, 200_000, false)).await;
        }
        session.drain().await;
        let at_bind = session.sent.whole_body();
        let request = format!("own-lifetime-{read}");
        let resuming = begin_resume(&connection, &id, &request).await;
        let resuming = resuming.unwrap_or_else(|error| panic!("{context}: {error}\n{}", stack.log()));
        let lifetime = resuming.lifetime.clone();
        assert_eq!(lifetime.base, session.sent.entries.len() as u64, "{context}");
        session = Loaded::in_lifetime(&connection, session, lifetime, new_nonce()).await;
        let (go_on, gate) = tokio::sync::oneshot::channel();
        let reading = tokio::spawn(async move {
            let open = async { gate.await.expect("it is opened") };
            within("a resume", resuming.body(open)).await
        });
        let waits = read % 2 == 0;
        let mut go_on = Some(go_on);
        if !waits {
            go_on.take().map(|go_on| go_on.send(()));
        }

        // Its own lifetime writes, and supersedes everything that its body holds.
        for checkpoint in [false, false, true, false] {
            let number = session.sent.entries.len() as u64 + 1;
            let length = rng.random_range(100..30_000);
            session.send(entry(number, length, checkpoint)).await;
        }
        session.drain().await;
        if waits {
            until(&format!("{context}: it is pruned"), async || {
                holdings.superseded_rows().await == 0
            })
            .await;
            assert!(!reading.is_finished(), "{context}: nothing was left to be read");
            pruned_underneath += 1;
        }
        go_on.take().map(|go_on| go_on.send(()));
        let body = reading.await.expect("the task").unwrap_or_else(|error| {
            panic!("{context}: {error}\n{}", stack.log());
        });
        assert!(
            body == at_bind,
            "{context}: {} bytes instead of {}",
            body.len(),
            at_bind.len()
        );
    }
    let from_archive = spliced(&stack).await;
    eprintln!(
        "{reads} resumes, {pruned_underneath} waited for the pruning; {from_archive} bytes came from the archive"
    );
    assert!(from_archive > 0.0, "nothing moved while it was read");
    holdings.are_whole(&stack, &session, "in the end").await;
    bodies_are_right(&stack, std::slice::from_ref(&session), "in the end").await;
    stops_and_verifies(&mut stack, "pruned by the reader's own lifetime");
    let report = segments_verify(&stack, &[]);
    assert_eq!(
        report["findings"].as_array().expect("findings").len(),
        0,
        "{report}"
    );
}

/// Invariants resume-is-current, byte-exact: the answer of a resume was lost. Its lifetime wrote deltas and a checkpoint, and
/// everything before that was archived and pruned; the same request again is the same lifetime with the same body.
#[tokio::test(flavor = "multi_thread")]
async fn resume_is_current_when_it_is_asked_again_after_everything_moved() {
    let mut stack = NativeStack::prepare().await;
    stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", "40000");
    stack.up().await;
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "asked-again", AckLevel::Store).await;
    let id = session.lifetime.session_id.clone();
    let mut holdings = Holdings::of(&stack, &session).await;
    session.send(entry(1, 700_000, true)).await;
    for number in 2..60 {
        session.send(entry(number, 1_000, false)).await;
    }
    session.drain().await;
    let at_bind = session.sent.whole_body();

    // Bound, and nothing of the body arrives.
    let lost = begin_resume(&connection, &id, "the-request")
        .await
        .expect("a bind");
    let lifetime = lost.lifetime.clone();
    drop(lost);
    let mut session = Loaded::in_lifetime(&connection, session, lifetime.clone(), new_nonce()).await;
    for round in 0..3 {
        let context = format!("round {round}");
        for step in 0..100 {
            let number = session.sent.entries.len() as u64 + 1;
            session.send(entry(number, 1_000, step == 40)).await;
        }
        session.drain().await;
        until(&format!("{context}: it is archived"), async || {
            holdings.superseded_rows().await == 0 && holdings.delta_bytes().await <= 40_000
        })
        .await;
        let before = spliced(&stack).await;
        let again = resume(&connection, &id, "the-request").await;
        let (again, body) = again.unwrap_or_else(|error| panic!("{context}: {error}\n{}", stack.log()));
        assert_eq!(
            (&again.lifetime_id, again.generation, again.base),
            (&lifetime.lifetime_id, lifetime.generation, lifetime.base),
            "{context}"
        );
        assert!(
            body == at_bind,
            "{context}: {} bytes instead of {}",
            body.len(),
            at_bind.len()
        );
        let from_archive = spliced(&stack).await - before;
        assert!(
            from_archive >= at_bind.len() as f64,
            "{context}: {from_archive} bytes came from the archive"
        );
        session.check_export(&connection, &context).await;
    }
    // The writer of that lifetime was not disturbed.
    let number = session.sent.entries.len() as u64 + 1;
    session.send(entry(number, 1_000, false)).await;
    session.drain().await;
    bodies_are_right(&stack, std::slice::from_ref(&session), "in the end").await;
    stops_and_verifies(&mut stack, "asked again");
}
