//! An archiver is at work on a session while that is erased.

use wakelog_proto::v1::AckLevel;

use crate::archive::{SEGMENTS, entry, is_stopped, until, was_set_back};
use crate::support::load::Loaded;
use crate::support::native::{Kind, NativeStack};
use crate::support::session::erase;
use crate::{bodies_are_right, stops_and_verifies};

/// Invariants opaque-absence, put-before-prune: an archiver that froze before its PUT wakes when the session is erased and its
/// objects are deleted. It records nothing, and what it has put is deleted by a later sweep.
#[tokio::test(flavor = "multi_thread")]
async fn opaque_absence_when_a_frozen_archiver_puts_after_the_erasure() {
    let mut stack = NativeStack::prepare().await;
    stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", "40000");
    stack.set("WAKELOG_ARCHIVE_RESWEEP_SECONDS", "1");
    stack.set_of(Kind::Archive, 0, "WAKELOG_TEST_FREEZE", "archiver::after_stage:1");
    stack.up_without(Kind::Archive, 1).await;
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "erased", AckLevel::Store).await;
    let mut other = Loaded::open(&connection, "other", AckLevel::Store).await;
    other.send(entry(1, 1_000, true)).await;
    other.drain().await;
    session.send(entry(1, 1_000, true)).await;
    for number in 2..80 {
        session.send(entry(number, 1_000, false)).await;
    }
    session.drain().await;
    let frozen = stack.pid(Kind::Archive, 0);
    until("the archiver freezes", async || is_stopped(frozen).await).await;

    let id = session.lifetime.session_id.clone();
    erase(&connection, &id).await.expect("an erasure");
    // The other one takes over once the group misses the first.
    stack.start(Kind::Archive, 1).await;
    let mark = format!("erased/{id}");
    until("the first sweep", async || !stack.objects(&mark).is_empty()).await;
    let below = format!("sessions/{id}/");
    until("nothing is there", async || stack.objects(&below).is_empty()).await;

    stack.signal(Kind::Archive, 0, "CONT");
    until(
        "it has put its object and is refused, or finds it swept away",
        async || was_set_back(&stack, 0).await,
    )
    .await;
    until("a later sweep deletes it", async || {
        stack.objects(&below).is_empty()
    })
    .await;
    assert_eq!(stack.metric(Kind::Archive, 0, SEGMENTS).await, 0.0);
    bodies_are_right(&stack, std::slice::from_ref(&other), "the other session").await;
    let listed = stack.command(&["segments", "ls", "--all", "--json"]).output();
    assert_eq!(listed.expect("it runs").stdout, b"", "the manifest has nothing");
    stops_and_verifies(&mut stack, "erased under a frozen archiver");
}
