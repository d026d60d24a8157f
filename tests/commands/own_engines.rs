//! Services on engines of the user's own: what is said when one of them is away, or was given something wrong.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::ran::{DEPENDENCY, DONE, NOT_FOUND, Ran, Running, USAGE, run, wait_until};
use crate::support::embedded::EmbeddedStack;
use crate::support::native::{Kind, NativeStack};
use crate::support::process::{free_port, get};
use crate::support::{PATIENCE, within};

/// Invariant acked-is-durable: what is stored stays stored, whatever becomes of the end of its lifetime. Another server ends
/// it; where there is none, that is said, and that nothing has to be sent again.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_when_no_server_ends_the_lifetime() {
    let mut stack = NativeStack::prepare().await;
    stack.up().await;
    let session = import(&stack, b"one\n").with(DONE).text().trim().to_owned();
    append_while(&mut stack, &session, 0, b"two\n").with(DONE);
    let described = run(&mut client(&stack, &["sessions", "show", &session, "--json"])).with(DONE);
    assert_eq!(described.object()["lifetime_status"], "ended");

    let (first, second) = (
        stack.endpoint(Kind::Reconstruct, 0),
        stack.endpoint(Kind::Reconstruct, 1),
    );
    let stored =
        format!("session {session} holds all that was sent (1 entry, 6 bytes), its lifetime was left open");
    let ran = append_while(&mut stack, &session, 1, b"three\n").with(DEPENDENCY);
    let ran = ran.saying(&[&stored, &first, &second, "nothing has to be sent again"]);
    assert!(!ran.stderr.contains("(Unavailable)"), "{}", ran.stderr);

    stack.start(Kind::Reconstruct, 0).await;
    let file = stack.folder().join("more");
    std::fs::write(&file, b"four\n").unwrap();
    run(&mut client(&stack, &["append", &session, "more"])).with(DONE);
    let exported = run(&mut client(&stack, &["export", &session, "--out", "-"])).with(DONE);
    assert_eq!(exported.stdout, b"one\ntwo\nthree\nfour\n");
    assert!(stack.stop_all().success());
    stack.verify();
}

/// What was given to a service or a client and does not fit is named, with what to do.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_named() {
    let mut stack = NativeStack::prepare().await;
    run(&mut stack.command(&["migrate"])).with(DONE);
    let persist = |stack: &NativeStack, more: &[&str]| {
        let pages = format!("127.0.0.1:{}", free_port());
        let mut persist = stack.command(&["persist", "--http-listen", &pages]);
        run(persist.args(more))
    };
    persist(&stack, &["--replication", "3"])
        .with(DEPENDENCY)
        .saying(&["can't have 3 replicas", "--replication is larger than"]);
    let file = stack.folder().join("wakelog.toml");
    std::fs::write(&file, "[kafka]\n\"no.such.setting\" = 1\n").unwrap();
    persist(&stack, &[])
        .with(USAGE)
        .saying(&["\"no.such.setting\" is not accepted", "[kafka]"]);
    std::fs::remove_file(file).unwrap();

    stack.up().await;
    let session = import(&stack, b"one\n").with(DONE).text().trim().to_owned();
    let other = format!(
        "the database has folded topic {}, it can't take topic other",
        stack.topic()
    );
    persist(&stack, &["--topic", "other"])
        .with(DEPENDENCY)
        .saying(&[&other, "A database of its own for each topic"]);
    let doctor = run(&mut client(&stack, &["doctor", "--topic", "other"])).with(DEPENDENCY);
    assert!(doctor.text().contains(&other), "{}", doctor.text());

    // A relay with another key knows none of the tokens that the reconstructor signs.
    for number in 0..2 {
        assert!(stack.stop(Kind::Ingest, number).success());
    }
    std::fs::write(stack.folder().join("token-key"), "x".repeat(64)).unwrap();
    stack.start(Kind::Ingest, 0).await;
    std::fs::write(stack.folder().join("more"), b"two\n").unwrap();
    run(&mut client(&stack, &["append", &session, "more"]))
        .with(NOT_FOUND)
        .saying(&["need the same --token-key-file"]);

    // What it measures says little of an unoptimised build; it says so before it has anything.
    let nowhere = "postgres://me@127.0.0.1:1/nowhere";
    let mut bench = stack.command(&["bench", "unary", "--database-url", nowhere]);
    let ran = run(&mut bench).with(DEPENDENCY);
    assert_eq!(
        ran.stderr.contains("this is an unoptimised build"),
        cfg!(debug_assertions),
        "{}",
        ran.stderr
    );
    assert!(stack.stop_all().success());
}

/// `up` on the user's own engines says so to the doctor, and that its topic has gone to whoever asks whether it is ready.
#[tokio::test(flavor = "multi_thread")]
async fn up_on_own_engines_tells_what_became_of_them() {
    let engines = NativeStack::prepare().await;
    let (brokers, database, topic) = (
        engines.brokers(),
        engines.database_url(),
        engines.topic().to_owned(),
    );
    let mut stack = EmbeddedStack::prepare();
    stack.set_up_args(&[
        "--brokers",
        &brokers,
        "--database-url",
        &database,
        "--topic",
        &topic,
    ]);
    stack.up().await;
    let announcement = stack.folder().join(".local/state/wakelog/up.json");
    wait_until("the announcement", || announcement.exists());
    let doctor = run(stack.command().arg("doctor")).with(DONE).text();
    assert_eq!(doctor.matches("behind their stack, so").count(), 2, "{doctor}");
    assert!(
        doctor.contains(&format!("http://{}/readyz says ready", stack.http())),
        "{doctor}"
    );
    assert!(
        !stack.whole_log().contains("embedded engines are up"),
        "{}",
        stack.log()
    );
    run(stack
        .command()
        .args(["verify", "--data-dir"])
        .arg(stack.data_dir()))
    .with(NOT_FOUND)
    .saying(&["holds no embedded stack"]);

    engines.engines().kafka.delete_topic(&topic).await;
    let gone = format!("topic \"{topic}\" does not exist");
    let told = async {
        loop {
            let page = get(&stack.http(), "/readyz").await.unwrap_or_default();
            if page.starts_with("HTTP/1.1 503") && page.contains(&gone) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    within("/readyz says that the topic has gone", told).await;
    stack.kill();
}

fn client(stack: &NativeStack, args: &[&str]) -> Command {
    let mut client = stack.command(args);
    client
        .args(["--server", &stack.endpoints(Kind::Reconstruct)])
        .args(["--relay", &stack.endpoints(Kind::Ingest)])
        .arg("--token-file")
        .arg(stack.folder().join("caller-token"));
    client
}

fn import(stack: &NativeStack, bytes: &[u8]) -> Ran {
    std::fs::write(stack.folder().join("imported"), bytes).unwrap();
    run(&mut client(stack, &["import", "imported"]))
}

/// Appends a line, and kills a reconstructor between its ack and the end of the lifetime.
fn append_while(stack: &mut NativeStack, session: &str, dies: usize, line: &[u8]) -> Ran {
    let last_entry = |stack: &NativeStack| {
        let shown = run(&mut client(stack, &["sessions", "show", session, "--json"])).with(DONE);
        shown.object()["last_entry_seq"].as_u64().unwrap()
    };
    let before = last_entry(stack);
    let mut append = Running::start(&mut client(stack, &["append", session]), Stdio::piped());
    let mut input = append.stdin();
    input.write_all(line).unwrap();
    wait_until("the line is stored", || last_entry(stack) == before + 1);
    stack.kill(Kind::Reconstruct, dies);
    drop(input);
    append.end_within(PATIENCE)
}
