//! A service that dies at a named step, by counter: nothing acknowledged is lost, doubled or altered, and everything goes
//! on by itself.

use rand::RngCore as _;
use wakelog_proto::v1::AckLevel;

use crate::support::load::Loaded;
use crate::support::seed;
use crate::support::session::resume;
use crate::support::stack::Stack;

/// Every step at which a service can die while entries are written.
const WRITE_STEPS: &[&str] = &[
    "persister::after_claim",
    "persister::before_batch",
    "persister::after_fold",
    "persister::before_write",
    "persister::before_commit",
    "persister::after_commit",
    "store::before_begin",
    "store::after_lock",
    "store::after_write",
    "store::before_commit",
    "store::after_commit",
    "stream::publish",
    "stream::publish_after",
    "ingest::before_publish",
    "ingest::after_publish",
    "ingest::before_ack",
    "ingest::watcher",
];

/// Invariants acked-is-durable, exactly-once-fold, no-silent-gap, byte-exact, at each step and after a seeded number of
/// passes through it.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_over_a_death_at_every_step_of_writing() {
    for seed in seed::seeds(1) {
        for (number, step) in WRITE_STEPS.iter().enumerate() {
            // A process claims few partitions and, with a short load, folds few batches.
            let most = match *step {
                "persister::after_claim" => 2,
                step if step.starts_with("persister::") || step.starts_with("store::") => 4,
                _ => 11,
            };
            let passes = (seed * 7 + number as u64 * 3) % most;
            let failpoint = format!("{step}={passes}*off->2*return->off");
            eprintln!("seed {seed}, failpoint {failpoint}");
            let mut stack = Stack::start_with(&failpoint).await;
            let connection = stack.connect().await;
            let mut logged = Loaded::open(&connection, "logged", AckLevel::Log).await;
            let mut stored = Loaded::open(&connection, "stored", AckLevel::Store).await;
            tokio::join!(logged.send_seeded(seed, 40), stored.send_seeded(seed + 1, 40));
            tokio::join!(logged.drain(), stored.drain());
            logged.check(&connection, &failpoint).await;
            stored.check(&connection, &failpoint).await;
            assert!(
                stack.stop().success(),
                "{failpoint}: a drained stop ends well\n{}",
                stack.log()
            );
            stack.verify();
        }
    }
}

/// Every step at which a reconstructor can die while a session is resumed. The first three are passed by the attachment
/// of the first writer as well.
const RESUME_STEPS: &[&str] = &[
    "reconstructor::after_raise=1*off->1*return->off",
    "reconstructor::after_bind_publish=1*off->1*return->off",
    "reconstructor::after_bind_applied=1*off->1*return->off",
    "reconstructor::between_pages=1*return->off",
    "reconstructor::before_close=1*return->off",
];

/// Invariants acked-is-durable, one-writer, resume-is-current: the same request, asked again after a death, gets the
/// lifetime and the whole body; the writer that it superseded gets no further.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_over_a_death_at_every_step_of_a_resume() {
    for step in RESUME_STEPS {
        let mut stack = Stack::start_with(step).await;
        let connection = stack.connect().await;
        let mut session = Loaded::open(&connection, "resumed", AckLevel::Log).await;
        session.send_seeded(11, 30).await;
        // Larger than a page, however well it is packed, so that there is a step between two pages.
        let mut noise = vec![0; 5_000_000];
        seed::rng(12).fill_bytes(&mut noise);
        let large = seed::Entry {
            bytes: noise.into(),
            checkpoint: false,
        };
        session.send(large).await;
        session.drain().await;
        let id = session.lifetime.session_id.clone();
        let died = resume(&connection, &id, "the-resume")
            .await
            .expect_err("the step is passed by every resume");
        assert!(
            matches!(
                &died,
                wakelog_client::Error::Refused {
                    code: tonic::Code::Unavailable,
                    ..
                }
            ),
            "{step}: {died}"
        );
        let (lifetime, body) = resume(&connection, &id, "the-resume")
            .await
            .unwrap_or_else(|error| panic!("{step}: {error}"));
        assert_eq!(
            lifetime.generation, 2,
            "{step}: the same request is the same lifetime"
        );
        assert_eq!(
            session.sent.check(&body),
            Ok(session.sent.entries.len()),
            "{step}"
        );
        session.check(&connection, step).await;
        assert!(
            stack.stop().success(),
            "{step}: a drained stop ends well\n{}",
            stack.log()
        );
        stack.verify();
    }
}
