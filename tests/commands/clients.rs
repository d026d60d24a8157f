//! Who may write to a session, how a client finds its server, and what an interrupt does.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::ran::{
    DONE, FAILED, REFUSED, Running, USAGE, client, import, resume, run, run_with_input, show, wait_until,
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

/// `up` announces itself to the clients of its user, and takes that back. One that runs stays announced: a second one says
/// so and leaves the announcement alone, also when it stops.
#[tokio::test(flavor = "multi_thread")]
async fn clients_find_the_stack_of_their_user() {
    let mut stack = Stack::prepare();
    stack.set_up_args(&[]);
    let announcement = stack.folder().join(".local/state/wakelog/up.json");
    let announced = || std::fs::read_to_string(&announcement).unwrap_or_default();
    stack.up().await;
    wait_until("the announcement", || announced().contains(&stack.endpoint()));
    run(stack.command().args(["sessions", "ls"])).with(DONE);
    // Neither port is the usual one: where the pages are was announced too.
    let doctor = run(stack.command().arg("doctor")).with(DONE).text();
    let ready = format!("http://{}/readyz says ready", stack.http());
    assert!(
        doctor.contains(&ready) && doctor.contains("embedded, so"),
        "{doctor}"
    );

    let mut second = Stack::prepare();
    second.set_up_args(&[]);
    second.set_home(stack.folder());
    second.up().await;
    let warning = || {
        let log = second.whole_log();
        log.contains("stays announced") && log.contains(&stack.endpoint())
    };
    wait_until("the second one says that it is not announced", warning);
    assert!(announced().contains(&stack.endpoint()));
    assert!(second.stop().success());
    assert!(
        announced().contains(&stack.endpoint()),
        "it was not the second one's"
    );

    // One that was killed has left its announcement behind, and the next one takes it over.
    stack.kill();
    second.up().await;
    wait_until("the second announcement", || {
        announced().contains(&second.endpoint())
    });
    run(stack.command().args(["sessions", "ls"])).with(DONE);
    assert!(second.stop().success());
    assert!(!announcement.exists());
}

/// An interrupted client says so, whichever signal it was. What a writer has read is appended, and how much that was is said.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_a_client() {
    let mut stack = Stack::start().await;
    let session = import(&stack, b"one\n", "kind=interrupt");
    let mut body = b"one\n".to_vec();
    for name in ["INT", "TERM"] {
        let follow = Running::start(&mut stack.client(&["tail", &session, "-f"]), Stdio::null());
        std::thread::sleep(Duration::from_millis(500));
        signal(name, follow.pid());
        let ran = follow.end_within(PATIENCE).with(FAILED).saying(&["interrupted"]);
        assert_eq!(ran.stdout, body);

        let append = ["append", &session, "--json"];
        let mut append = Running::start(&mut stack.client(&append), Stdio::piped());
        let mut input = append.stdin();
        let before = show(&stack, &session)["last_entry_seq"].as_u64().unwrap();
        input.write_all(b"two\nthree\nno end of a line").unwrap();
        wait_until("two lines are stored", || {
            show(&stack, &session)["last_entry_seq"] == before + 2
        });
        signal(name, append.pid());
        let ran = append.end_within(PATIENCE).with(FAILED);
        let ran = ran.saying(&["2 entries, 10 bytes were appended", "interrupted"]);
        assert_eq!(ran.object()["entries"], 2);
        drop(input);
        body.extend_from_slice(b"two\nthree\n");
        assert_eq!(show(&stack, &session)["lifetime_status"], "ended", "{name}");
    }
    assert_eq!(resume(&stack, &session), body);
    assert!(stack.stop().success());
    stack.verify();
}

/// An interrupted resume leaves no part of a file, whichever signal it was.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_resume_leaves_no_part_of_a_file() {
    // It takes connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", silent.local_addr().unwrap());
    let stack = Stack::prepare();
    let folder = tempfile::tempdir_in(stack.folder()).unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let out = folder.path().join("out");
    for name in ["INT", "TERM"] {
        let mut resume = stack.command();
        resume.args([
            "resume",
            "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "--server",
            &server,
        ]);
        let resume = Running::start(resume.arg("--out").arg(&out), Stdio::null());
        wait_until("a file of another name", || files() == 1);
        // The file is there a moment before the signal is listened for.
        std::thread::sleep(Duration::from_millis(500));
        signal(name, resume.pid());
        resume.end_within(PATIENCE).with(FAILED).saying(&["interrupted"]);
        assert_eq!(files(), 0, "{name}");
    }
}
