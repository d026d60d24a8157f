//! What a session was: every entry of it, and its body after any of them.

use bytes::Bytes;
use wakelog_proto::v1::AckLevel;

use crate::ran::{DONE, NOT_FOUND, REFUSED, USAGE, client, keys, resume, run_with_input, show};
use crate::support::PATIENCE;
use crate::support::embedded::EmbeddedStack as Stack;
use crate::support::load::Loaded;
use crate::support::oracle::body_of;
use crate::support::process::get;
use crate::support::seed::Entry;

fn entry(number: usize, length: usize, checkpoint: bool) -> Entry {
    let mut bytes = format!("{{\"entry\":{number}}} ").into_bytes();
    bytes.resize(length.max(bytes.len()), b'z');
    bytes.push(b'\n');
    Entry {
        bytes: Bytes::from(bytes),
        checkpoint,
    }
}

async fn archived(stack: &Stack, kind: &str) {
    let deadline = std::time::Instant::now() + PATIENCE;
    let label = format!("kind=\"{kind}\"");
    loop {
        let page = get(&stack.http(), "/metrics").await.unwrap_or_default();
        let is_it = |line: &str| line.starts_with("wakelog_archiver_segments_total") && line.contains(&label);
        if page.lines().any(is_it) {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "{kind}\n{}", stack.log());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// A session whose entries are in the hot tail and in segments of each kind, with its writer still at work.
async fn written(stack: &Stack) -> Loaded {
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "history", AckLevel::Store).await;
    for number in 1..=3 {
        session.send(entry(number, 500, false)).await;
    }
    session.send(entry(4, 2_000, true)).await;
    for number in 5..=60 {
        session.send(entry(number, 1_000, false)).await;
    }
    session.drain().await;
    archived(stack, "safety_valve").await;
    session.send(entry(61, 700_000, true)).await;
    session.send(entry(62, 900, false)).await;
    session.drain().await;
    archived(stack, "superseded").await;
    session.send(entry(63, 600_000, false)).await;
    session.drain().await;
    session
}

async fn stack_with_a_valve() -> Stack {
    let mut stack = Stack::prepare();
    stack.set_up_args(&["--no-discovery", "--archive-valve-bytes", "20000"]);
    stack.up().await;
    stack
}

/// Invariants archived-is-complete, byte-exact: every entry that was sent, in order and each once, wherever it is.
#[tokio::test(flavor = "multi_thread")]
async fn archived_is_complete_and_the_history_is_every_entry_once() {
    let mut stack = stack_with_a_valve().await;
    let session = written(&stack).await;
    let id = session.lifetime.session_id.clone();
    let sent: Vec<u8> = session
        .sent
        .entries
        .iter()
        .flat_map(|entry| entry.bytes.to_vec())
        .collect();
    let printed = client(&stack, &["history", &id]).with(DONE).stdout;
    assert!(printed == sent, "{} bytes and not {}", printed.len(), sent.len());

    let described = |sent: &Entry| (sent.checkpoint, sent.bytes.len() as u64);
    let expected: Vec<_> = (1..)
        .zip(session.sent.entries.iter().map(described))
        .map(|(seq, (checkpoint, length))| (Some(seq), Some(checkpoint), Some(length)))
        .collect();
    let out = stack.folder().join("history");
    let out = out.to_str().unwrap();
    for more in [&["--json"][..], &["--json", "--out", out]] {
        let objects = client(&stack, &[&["history", &id], more].concat())
            .with(DONE)
            .objects();
        let found: Vec<_> = objects
            .iter()
            .map(|object| {
                assert_eq!(keys(object), ["entry_seq", "checkpoint", "length"].into());
                let number = |name: &str| object[name].as_u64();
                (
                    number("entry_seq"),
                    object["checkpoint"].as_bool(),
                    number("length"),
                )
            })
            .collect();
        assert_eq!(found, expected);
    }
    assert!(std::fs::read(out).unwrap() == sent);
    client(&stack, &["history", &id, "--out", out])
        .with(REFUSED)
        .saying(&["--force"]);
    let said = client(&stack, &["history", &id, "--out", out, "--force"])
        .with(DONE)
        .text();
    assert!(said.contains("63 entries"), "{said}");
    let unknown = uuid::Uuid::new_v4().to_string();
    client(&stack, &["history", &unknown]).with(NOT_FOUND);
    assert!(stack.stop().success());
    stack.verify();
}

/// Invariants byte-exact, one-writer: a fork holds the body as it was after an entry, in a session of its own; the session that
/// it comes from is not bound, and its writer goes on.
#[tokio::test(flavor = "multi_thread")]
async fn byte_exact_forks_at_any_entry_leave_the_session_alone() {
    let mut stack = stack_with_a_valve().await;
    let mut session = written(&stack).await;
    let id = session.lifetime.session_id.clone();
    // The body's length too stays what it is while the archiver goes on.
    let described = || show(&stack, &id);
    let before = described();
    let file = |name: &str| stack.folder().join(name).to_str().unwrap().to_owned();
    // Around each checkpoint, in each segment, and at the ends.
    for at in [1, 3, 4, 5, 30, 60, 61, 62, 63] {
        let out = file(&format!("fork-{at}"));
        let at_text = at.to_string();
        let forked = client(
            &stack,
            &["resume", &id, "--at", &at_text, "--out", &out, "--json"],
        )
        .with(DONE)
        .object();
        let names = [
            "session_id",
            "forked_from",
            "forked_at",
            "first_entry_seq",
            "length",
            "sha256",
            "last_entry_seq",
            "file",
        ];
        assert_eq!(keys(&forked), names.into());
        let expected = body_of(&session.sent.entries[..at]);
        assert!(std::fs::read(&out).unwrap() == expected, "the file of {at}");
        assert_eq!(forked["length"], expected.len());
        let starts_with = match at {
            ..4 => 1,
            4..61 => 4,
            _ => 61,
        };
        assert_eq!(forked["first_entry_seq"], starts_with, "{at}");
        let new = forked["session_id"].as_str().unwrap();
        assert_ne!(new, id);
        assert_eq!(
            show(&stack, new)["labels"],
            serde_json::json!({"forked_from": id, "forked_at": at_text})
        );
        assert!(resume(&stack, new) == expected, "the session of {at}");
    }
    assert_eq!(described(), before, "it is as it was");
    session.send(entry(64, 100, false)).await;
    session.drain().await;
    session.check(&stack.connect().await, "its writer goes on").await;

    // A fork of a fork, with labels of its own, by a name; who forked may append.
    let (first, again) = (file("named-1"), file("named-2"));
    let fork = |out: &str| {
        client(
            &stack,
            &["resume", &id, "--at", "62", "--out", out, "--request-id", "named"],
        )
        .with(DONE)
        .text()
    };
    let new = fork(&first);
    assert_eq!(fork(&again), new, "the same name is the same session");
    let new = new.trim();
    run_with_input(&mut stack.client(&["append", new]), b"more\n").with(DONE);
    let of_fork = file("of-fork");
    client(&stack, &["resume", new, "--at", "2", "--out", &of_fork]).with(DONE);
    let expected = [body_of(&session.sent.entries[..62]), b"more\n".to_vec()].concat();
    assert!(std::fs::read(&of_fork).unwrap() == expected);

    let out = file("none");
    let at = |session: &str, at: &str| client(&stack, &["resume", session, "--at", at, "--out", &out]);
    at(&id, "0").with(USAGE);
    at(&id, "65").with(NOT_FOUND).saying(&["its last one is 64"]);
    at(&uuid::Uuid::new_v4().to_string(), "1").with(NOT_FOUND);
    assert!(!std::path::Path::new(&out).exists());
    client(&stack, &["resume", &id, "--at", "1", "--out", &first])
        .with(REFUSED)
        .saying(&["already there"]);
    client(&stack, &["resume", &id, "--at", "1", "--out", "-"]).with(USAGE);
    let partial = std::fs::read_dir(stack.folder()).unwrap().flatten();
    assert_eq!(
        partial
            .filter(|file| file.file_name().to_string_lossy().contains(".partial-"))
            .count(),
        0
    );
    assert!(stack.stop().success());
    stack.verify();
}
