//! Who may write to a session, how a client finds its server, and what an interrupt does.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::ran::{
    DONE, FAILED, REFUSED, Running, USAGE, client, import, resume, run, run_with_input, wait_until,
};
use crate::support::PATIENCE;
use crate::support::embedded::EmbeddedStack as Stack;
use crate::support::process::signal;

/// Invariant one-writer: who resumes a session is the one who may append to it; who wrote before is refused until it takes
/// the session over on purpose.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_between_two_machines() {
    let mut stack = Stack::start().await;
    let session = import(&stack, b"start\n", "kind=writers");
    let other_home = stack.folder().join("other-machine");
    let elsewhere = |mut command: Command| {
        command.env("HOME", &other_home);
        command
    };
    let append = |command: Command, line: &[u8]| run_with_input(&mut { command }, line);
    append(stack.client(&["append", &session]), b"here 1\n").with(DONE);
    // The other machine never held the session.
    append(elsewhere(stack.client(&["append", &session])), b"stolen\n")
        .with(REFUSED)
        .saying(&["--take-over"]);

    run(&mut elsewhere(
        stack.client(&["resume", &session, "--out", "taken"]),
    ))
    .with(DONE);
    append(stack.client(&["append", &session]), b"late\n")
        .with(REFUSED)
        .saying(&["--take-over"]);
    append(elsewhere(stack.client(&["append", &session])), b"there 1\n").with(DONE);
    append(stack.client(&["append", &session]), b"late again\n").with(REFUSED);
    append(stack.client(&["append", &session, "--take-over"]), b"here 2\n").with(DONE);
    append(elsewhere(stack.client(&["append", &session])), b"too late\n").with(REFUSED);
    assert_eq!(resume(&stack, &session), b"start\nhere 1\nthere 1\nhere 2\n");
    assert!(stack.stop().success());
    stack.verify();
}

/// The same request id is the same session; two imports without one are two.
#[tokio::test(flavor = "multi_thread")]
async fn a_named_import_is_one_session() {
    let mut stack = Stack::start().await;
    std::fs::write(stack.folder().join("file"), b"v1\n").unwrap();
    let named = || {
        client(&stack, &["import", "file", "--request-id", "nightly"])
            .with(DONE)
            .text()
    };
    let first = named();
    assert_eq!(named(), first, "asked again, it is the same import");
    // What was written since, or another file, is not replaced.
    run_with_input(&mut stack.client(&["append", first.trim()]), b"more\n").with(DONE);
    client(&stack, &["import", "file", "--request-id", "nightly"]).with(REFUSED);
    std::fs::write(stack.folder().join("file"), b"v2\n").unwrap();
    client(&stack, &["import", "file", "--request-id", "nightly"])
        .with(REFUSED)
        .saying(&["--request-id"]);
    assert_eq!(resume(&stack, first.trim()), b"v1\nmore\n");
    let unnamed = || client(&stack, &["import", "file"]).with(DONE).text();
    assert_ne!(unnamed(), unnamed());
    let long = "x".repeat(5000);
    client(&stack, &["import", "file", "--request-id", &long]).with(USAGE);
    client(&stack, &["import", "file", "--request-id", ""]).with(USAGE);
    assert!(stack.stop().success());
}

/// `up` announces itself to the clients of its user, and takes that back.
#[tokio::test(flavor = "multi_thread")]
async fn clients_find_the_stack_of_their_user() {
    let mut stack = Stack::prepare();
    stack.set_up_args(&[]);
    stack.up().await;
    wait_until("the announcement", || {
        stack.folder().join(".local/state/wakelog/up.json").exists()
    });
    run(stack.command().args(["sessions", "ls"])).with(DONE);
    assert!(stack.stop().success());
    assert!(!stack.folder().join(".local/state/wakelog/up.json").exists());
}

/// An interrupted client says so, and leaves no part of a file.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_a_client() {
    let mut stack = Stack::start().await;
    let session = import(&stack, b"one\n", "kind=interrupt");
    let follow = Running::start(&mut stack.client(&["tail", &session, "-f"]), Stdio::null());
    std::thread::sleep(Duration::from_millis(500));
    signal("INT", follow.pid());
    let ran = follow.end_within(PATIENCE).with(FAILED).saying(&["interrupted"]);
    assert_eq!(ran.stdout, b"one\n");
    assert!(stack.stop().success());
}
