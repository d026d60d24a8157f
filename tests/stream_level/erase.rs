//! A session is erased: nothing of it, or of what is below it, can be had any more, and no other session changes.

use std::time::{Duration, Instant};

use wakelog_client::Connection;
use wakelog_proto::v1::{ListSessionsRequest, RefusalReason, TailSessionRequest};

use crate::archive::{SEGMENTS, wait_for};
use crate::support::PATIENCE;
use crate::support::questions::every_question;
use crate::support::refusal::refused;
use crate::support::relay::{commit, renew};
use crate::support::session::{erase, open, open_below, stop};
use crate::support::stack::Stack;
use crate::support::subject::Subject;

/// A session with entries that a checkpoint has superseded, whose writer has ended.
async fn written(connection: &Connection, session: String) -> Subject {
    let mut subject = Subject::open_in(connection, session).await;
    for number in 0..5 {
        let delta = format!("{{\"superseded\":{number}}}\n");
        subject.write(connection, delta.as_bytes()).await;
    }
    subject.checkpoint(connection, b"{\"checkpoint\":1}\n").await;
    subject.write(connection, b"{\"after\":1}\n").await;
    stop(connection, &subject.lifetime).await.expect("an end");
    subject
}

async fn sessions_of(connection: &Connection) -> Vec<String> {
    let mut sessions = connection.sessions();
    let listed = sessions.list_sessions(ListSessionsRequest::default()).await;
    let sessions = listed.expect("a list").into_inner().sessions;
    sessions.into_iter().map(|session| session.session_id).collect()
}

/// Every entry from the first on.
async fn history(connection: &Connection, session: &str) -> Result<(), tonic::Status> {
    let request = TailSessionRequest {
        session_id: session.to_owned(),
        from_entry_seq: 1,
        follow: false,
    };
    let mut parts = connection.sessions().tail_session(request).await?.into_inner();
    while parts.message().await?.is_some() {}
    Ok(())
}

/// Waits until nothing of an erased session is in the object store but the mark that it was erased.
async fn objects_are_gone(stack: &Stack, session: &str) {
    let Stack::Native(native) = stack else {
        return;
    };
    let deadline = Instant::now() + PATIENCE;
    let is_swept = || {
        let mark = native.objects(&format!("erased/{session}"));
        !mark.is_empty() && native.objects(&format!("sessions/{session}/")).is_empty()
    };
    while !is_swept() {
        assert!(
            Instant::now() < deadline,
            "{session} is not swept\n{}",
            stack.log()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn objects_of(stack: &Stack, session: &str) -> Vec<String> {
    match stack {
        Stack::Native(native) => native.objects(&format!("sessions/{session}/")),
        Stack::Embedded(_) => Vec::new(),
    }
}

/// Invariants opaque-absence, archived-is-complete: of an erased session and of those below it every question is answered as
/// of one that never was, its writer is refused, and its objects go; what was not erased stays as it was.
#[tokio::test(flavor = "multi_thread")]
async fn opaque_absence_of_what_was_erased_and_of_all_below_it() {
    let mut stack = Stack::start().await;
    let connection = stack.connect().await;
    let root = open(&connection, "root").await;
    let child = open_below(&connection, &root, "child").await;
    let grandchild = open_below(&connection, &child, "grandchild").await;
    let other = open(&connection, "other").await;
    let lone_child = open_below(&connection, &other, "lone child").await;
    let mut root = written(&connection, root).await;
    let child = written(&connection, child).await;
    let grandchild = written(&connection, grandchild).await;
    let mut other = written(&connection, other).await;
    let lone_child = written(&connection, lone_child).await;
    wait_for(&stack, SEGMENTS, "superseded", 5.0).await;
    wait_for(&stack, "wakelog_archiver_snapshots_total", "", 5.0).await;
    let others_objects = objects_of(&stack, &other.session);

    // A writer that is at work.
    root.attach_anew(&connection).await;
    root.write(&connection, b"{\"at\":\"work\"}\n").await;
    let late = root.next_frame();
    erase(&connection, &root.session).await.expect("an erasure");
    erase(&connection, &root.session).await.expect("asked again");
    erase(&connection, &lone_child.session).await.expect("an erasure");

    let late = commit(&connection, Some(root.token()), &late).await;
    refused("a late frame", late, RefusalReason::SessionNotFound);
    let renewed = renew(&connection, Some(root.token())).await;
    refused("a renewal", renewed, RefusalReason::SessionNotFound);
    let gone = [&root, &child, &grandchild, &lone_child].map(|subject| subject.session.clone());
    for session in &gone {
        for (what, answer) in every_question(&connection, session).await {
            refused(what, answer, RefusalReason::SessionNotFound);
        }
        let history = history(&connection, session).await;
        refused("the history", history, RefusalReason::SessionNotFound);
        objects_are_gone(&stack, session).await;
    }
    assert_eq!(sessions_of(&connection).await, [other.session.clone()]);
    // Not even its name can be had again.
    let again = wakelog_proto::v1::OpenSessionRequest {
        request_id: "root".to_owned(),
        ..Default::default()
    };
    let again = connection.sessions().open_session(again).await;
    refused("opened again", again, RefusalReason::SessionNotFound);

    other.check(&connection, "the other session").await;
    history(&connection, &other.session).await.expect("its history");
    let kept = objects_of(&stack, &other.session);
    assert!(others_objects.iter().all(|key| kept.contains(key)), "{kept:?}");
    other.attach_anew(&connection).await;
    other.write(&connection, b"{\"goes\":\"on\"}\n").await;
    other.check(&connection, "it goes on").await;
    assert!(stack.stop().success(), "{}", stack.log());
    stack.verify();
}
