//! An archiver, the object store or an object fails: nothing is pruned that is not archived, and a body is whole or an error.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rand::Rng as _;
use wakelog_proto::v1::{AckLevel, RefusalReason};

use crate::support::load::Loaded;
use crate::support::native::{Engines, Kind, NativeStack};
use crate::support::process::{get, sum_of};
use crate::support::seed::{self, Entry};
use crate::support::session::export;
use crate::support::{PATIENCE, within};
use crate::{bodies_are_right, stops_and_verifies};

pub(crate) const SEGMENTS: &str = "wakelog_archiver_segments_total";

pub(crate) fn entry(number: u64, length: usize, checkpoint: bool) -> Entry {
    let mut bytes = format!("{{\"entry\":{number}}} ").into_bytes();
    bytes.resize(length.max(bytes.len()), b'y');
    bytes.push(b'\n');
    Entry {
        bytes: Bytes::from(bytes),
        checkpoint,
    }
}

pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + 2 * PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether an archiver that was frozen did not get through with what it had begun: it was refused, or its transaction or its object
/// was gone when it woke.
pub(crate) async fn was_set_back(stack: &NativeStack, number: usize) -> bool {
    let page = get(&stack.http(Kind::Archive, number), "/metrics").await;
    let page = page.unwrap_or_default();
    let refused = sum_of(&page, "wakelog_archiver_refusals_total", "");
    let failed = sum_of(&page, "wakelog_archiver_jobs_total", "outcome=\"failed\"");
    refused + failed > 0.0
}

pub(crate) async fn is_stopped(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = status.rsplit(')').next().unwrap_or_default();
    after_name.trim_start().starts_with('T')
}

/// Invariants put-before-prune, archived-is-complete, byte-exact: an archiver is frozen with a chosen range before it stages it,
/// or after its PUT; another one flushes past it, a checkpoint comes, and then it wakes. It prunes nothing and records nothing
/// that a later checkpoint has superseded, and the body is right at every moment.
#[tokio::test(flavor = "multi_thread")]
async fn put_before_prune_when_a_frozen_archiver_wakes_behind_another_one() {
    for place in ["archiver::before_stage", "archiver::after_put"] {
        let mut stack = NativeStack::prepare().await;
        stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", "40000");
        stack.set_of(Kind::Archive, 0, "WAKELOG_TEST_FREEZE", &format!("{place}:1"));
        stack.up_without(Kind::Archive, 1).await;
        let connection = stack.connect().await;
        let mut session = Loaded::open(&connection, "frozen", AckLevel::Store).await;
        session.send(entry(1, 1_000, true)).await;
        for number in 2..80 {
            session.send(entry(number, 1_000, false)).await;
        }
        session.drain().await;
        let frozen = stack.pid(Kind::Archive, 0);
        until("the archiver freezes", async || is_stopped(frozen).await).await;
        session.check(&connection, "while it is frozen").await;

        // The other one takes over once the group misses the first, and flushes past it.
        stack.start(Kind::Archive, 1).await;
        let archived = async |label: &str| {
            let page = get(&stack.http(Kind::Archive, 1), "/metrics").await;
            page.unwrap_or_default()
                .lines()
                .any(|line| line.starts_with(SEGMENTS) && line.contains(label))
        };
        until("the valve opens", async || archived("safety_valve").await).await;
        session.check(&connection, "after the other one's flush").await;
        let mut session = Loaded::attach_again(&connection, session).await;
        session.send(entry(80, 1_000, true)).await;
        session.send(entry(81, 1_000, false)).await;
        session.drain().await;
        until("the checkpoint's flush", async || archived("superseded").await).await;

        stack.signal(Kind::Archive, 0, "CONT");
        until("the first one is refused", async || was_set_back(&stack, 0).await).await;
        assert_eq!(
            stack.metric(Kind::Archive, 0, SEGMENTS).await,
            0.0,
            "{place}: it recorded something"
        );
        bodies_are_right(&stack, std::slice::from_ref(&session), place).await;
        stops_and_verifies(&mut stack, place);
    }
}

/// Invariants put-before-prune, resume-is-current: the object store goes away while entries are due, and comes back; other
/// sessions go on. An object that is damaged or gone makes a body an error, never a shorter or another one.
#[tokio::test(flavor = "multi_thread")]
async fn resume_is_current_or_an_error_when_the_archive_is_away_or_damaged() {
    let engines = Arc::new(Engines::own().await);
    let mut stack = NativeStack::prepare_on(engines.clone()).await;
    stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", "40000");
    stack.up().await;
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "away", AckLevel::Store).await;
    let mut other = Loaded::open(&connection, "other", AckLevel::Store).await;
    session.send(entry(1, 1_000, true)).await;
    engines.s3.kill();
    for number in 2..80 {
        session.send(entry(number, 1_000, false)).await;
        other.send(entry(number, 300, number == 2)).await;
    }
    session.drain().await;
    other.drain().await;
    let failed = async || {
        let mut failed = 0.0;
        for number in 0..2 {
            failed += stack
                .metric(Kind::Archive, number, "wakelog_archive_requests_total")
                .await;
        }
        failed
    };
    let before = failed().await;
    until("the archiver tries", async || failed().await > before).await;
    for (loaded, name) in [(&session, "away"), (&other, "other")] {
        loaded.check(&connection, name).await;
    }
    engines.s3.start();
    let id = session.lifetime.session_id.clone();
    let segments = format!("sessions/{id}/0");
    until("it is archived", async || !stack.objects(&segments).is_empty()).await;
    until("it is pruned", async || is_spliced(&stack, &session).await).await;

    // One bit of one object.
    let key = stack.objects(&segments).remove(0);
    let path: PathBuf = stack.object_path(&key);
    let good = std::fs::read(&path).expect("the object");
    let mut bad = good.clone();
    bad[good.len() / 3] ^= 1;
    overwrite(&path, &bad);
    refused(&connection, &id, "a flipped bit", RefusalReason::StoreCorrupt).await;
    overwrite(&path, &good[..good.len() / 2]);
    refused(
        &connection,
        &id,
        "a truncated object",
        RefusalReason::StoreCorrupt,
    )
    .await;
    std::fs::remove_file(&path).expect("it is removed");
    refused(&connection, &id, "a missing object", RefusalReason::StoreCorrupt).await;
    engines.s3.kill();
    refused(
        &connection,
        &id,
        "a store that is away",
        RefusalReason::DependencyUnavailable,
    )
    .await;
    engines.s3.start();
    std::fs::write(&path, &good).expect("it is back");
    session.check(&connection, "with the object back").await;
    other.check(&connection, "the other session").await;
    stops_and_verifies(&mut stack, "the archive was away");
}

/// Written in place: the server keeps what it knows of an object beside its bytes.
pub(crate) fn overwrite(path: &std::path::Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("it is written");
}

async fn refused(connection: &wakelog_client::Connection, id: &str, what: &str, reason: RefusalReason) {
    match export(connection, id).await {
        Ok((received, _)) => panic!("{what}: a body of {} bytes came", received.length),
        Err(error) => assert_eq!(error.refusal_reason(), Some(reason), "{what}: {error}"),
    }
}

/// Bytes of bodies that came from the archive.
pub(crate) async fn spliced(stack: &NativeStack) -> f64 {
    let name = "wakelog_reconstructor_archived_bytes_total";
    stack.total(Kind::Reconstruct, name, "").await
}

/// How many bodies a test reads while they are pruned: `WAKELOG_TEST_READS`, or a few.
pub(crate) fn reads() -> usize {
    std::env::var("WAKELOG_TEST_READS").map_or(12, |reads| reads.parse().expect("a number"))
}

/// Whether a body of the session needs the archive.
async fn is_spliced(stack: &NativeStack, session: &Loaded) -> bool {
    let before = spliced(stack).await;
    let connection = stack.connect().await;
    session.check(&connection, "a body that may be spliced").await;
    spliced(stack).await > before
}

/// Invariants resume-is-current, byte-exact, archived-is-complete: exports that are read page by page while the session's own
/// checkpoints arrive and the archiver prunes underneath; each body is one that the session had. `WAKELOG_TEST_READS` says how
/// many.
#[tokio::test(flavor = "multi_thread")]
async fn byte_exact_while_the_archiver_prunes_underneath() {
    let reads = reads();
    let seed = seed::seeds(1)[0];
    eprintln!("seed {seed}: WAKELOG_TEST_SEED={seed} replays it");
    let mut rng = seed::rng(seed);
    let mut stack = NativeStack::prepare().await;
    // Each page of a body waits, so that there is time to move what comes after it.
    for number in 0..2 {
        stack.set_of(
            Kind::Reconstruct,
            number,
            "FAILPOINTS",
            "reconstructor::between_pages=sleep(300)",
        );
    }
    stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", "6000000");
    stack.up().await;
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "underneath", AckLevel::Store).await;
    session.send(entry(0, 1_000, true)).await;
    let mut number = 1;
    for read in 0..reads {
        for _ in 0..rng.random_range(40..60) {
            session.send(entry(number, 200_000, false)).await;
            number += 1;
        }
        session.drain().await;
        let bodies: HashSet<Vec<u8>> = [session.sent.whole_body()].into();
        let (id, reader) = (session.lifetime.session_id.clone(), connection.clone());
        let exporting = tokio::spawn(async move { within("an export", export(&reader, &id)).await });
        // While it is read: a checkpoint, and more than the valve lets through.
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..400))).await;
        let mut allowed = bodies;
        session.send(entry(number, 1_000, true)).await;
        number += 1;
        allowed.insert(session.sent.whole_body());
        session.drain().await;
        let (_, body) = exporting.await.expect("the task").unwrap_or_else(|error| {
            panic!("seed {seed}, read {read}: {error}\n{}", stack.log());
        });
        assert!(
            allowed.contains(&body),
            "seed {seed}, read {read}: {} bytes",
            body.len()
        );
    }
    let spliced = spliced(&stack).await;
    eprintln!("{spliced} bytes of {reads} bodies came from the archive");
    assert!(spliced > 0.0, "nothing moved while it was read");
    bodies_are_right(&stack, std::slice::from_ref(&session), "in the end").await;
    stops_and_verifies(&mut stack, "pruned underneath");
}
