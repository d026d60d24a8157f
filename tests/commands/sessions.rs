//! Sessions by hand: append, tail, list, show, export and resume.

use std::collections::BTreeSet;
use std::process::Stdio;

use crate::ran::{
    DEPENDENCY, DONE, NOT_FOUND, REFUSED, USAGE, client, import, keys, resume, run, run_with_input, show,
    wait_until,
};
use crate::support::embedded::EmbeddedStack as Stack;

/// No session has this id.
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000001";

/// Invariant byte-exact: only the byte 0x0A ends a line, and nothing else means anything.
#[tokio::test(flavor = "multi_thread")]
async fn byte_exact_for_appended_lines() {
    let mut stack = Stack::start().await;
    let session = import(&stack, b"{\"header\":1}\n", "kind=append");
    let lines: [&[u8]; 8] = [
        b"{\"a\":1}\n",
        b"crlf\r\n",
        b"\n",
        b"nul\0in the middle\n",
        b"a lone \r carriage return\n",
        b"\xff\xfe no utf-8 \xed\xa0\x80\n",
        "separators \u{2028} \u{85} \u{feff}\n".as_bytes(),
        b"the last has no newline",
    ];
    let appended = lines.concat();
    let ran = run_with_input(&mut stack.client(&["append", &session, "--json"]), &appended);
    let object = ran.with(DONE).object();
    assert_eq!(
        keys(&object),
        BTreeSet::from(["session_id", "entries", "length", "last_entry_seq"])
    );
    assert_eq!(object["entries"], lines.len());
    assert_eq!(object["length"], appended.len());
    assert_eq!(object["last_entry_seq"], 1 + lines.len());

    let body = [b"{\"header\":1}\n", &appended[..]].concat();
    let tailed = client(&stack, &["tail", &session]).with(DONE);
    assert_eq!(tailed.stdout, body, "tail");
    let entries = client(&stack, &["tail", &session, "--json"]).with(DONE).objects();
    assert_eq!(
        keys(&entries[0]),
        BTreeSet::from(["entry_seq", "checkpoint", "length"])
    );
    let told: Vec<_> = entries
        .iter()
        .map(|entry| (entry["entry_seq"].as_u64(), entry["length"].as_u64()))
        .collect();
    let lengths = std::iter::once(13).chain(lines.iter().map(|line| line.len() as u64));
    let expected: Vec<_> = (1..)
        .zip(lengths)
        .map(|(seq, length)| (Some(seq), Some(length)))
        .collect();
    assert_eq!(told, expected);
    assert_eq!(entries[0]["checkpoint"], true);
    assert!(entries[1..].iter().all(|entry| entry["checkpoint"] == false));
    let from = client(&stack, &["tail", &session, "--from", "9"]).with(DONE);
    assert_eq!(from.stdout, lines[7]);

    let file = stack.folder().join("more");
    std::fs::write(&file, b"\nfrom a file\n").unwrap();
    client(&stack, &["append", &session, file.to_str().unwrap()]).with(DONE);
    assert_eq!(resume(&stack, &session), [&body[..], b"\nfrom a file\n"].concat());
    client(&stack, &["append", &session, "absent"]).with(NOT_FOUND);
    assert!(stack.stop().success());
    stack.verify();
}

/// A writer that reaches no relay says so before anything is opened or bound; one that can be reached is enough.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_opened_for_a_writer_that_reaches_no_relay() {
    let mut stack = Stack::start().await;
    let file = stack.folder().join("file");
    std::fs::write(&file, b"one\n").unwrap();
    let import = |relays: &str| {
        client(
            &stack,
            &["import", file.to_str().unwrap(), "--json", "--relay", relays],
        )
    };
    let nobody = "http://127.0.0.1:1";
    import(nobody)
        .with(DEPENDENCY)
        .saying(&["no relay", nobody, "refused"]);
    let listed = client(&stack, &["sessions", "ls", "--json"]).with(DONE);
    assert_eq!(listed.stdout, b"");

    let object = import(&format!("{nobody},{}", stack.endpoint()))
        .with(DONE)
        .object();
    let session = object["session_id"].as_str().unwrap();
    let append = ["append", session, file.to_str().unwrap(), "--relay", nobody];
    client(&stack, &append)
        .with(DEPENDENCY)
        .saying(&["no relay", nobody]);
    let lifetimes = show(&stack, session)["lifetimes"].as_array().unwrap().len();
    assert_eq!(lifetimes, 1, "nothing was bound");

    let doctor = client(&stack, &["doctor", "--relay", nobody]).with(DEPENDENCY);
    assert!(doctor.text().contains(nobody), "{}", doctor.text());
    assert!(stack.stop().success());
}

/// Without -f a tail ends by itself; with it, it goes on with what is written later.
#[tokio::test(flavor = "multi_thread")]
async fn tail_follows_what_is_written_later() {
    let mut stack = Stack::start().await;
    let session = import(&stack, b"one\n", "kind=tail");
    assert_eq!(client(&stack, &["tail", &session]).with(DONE).stdout, b"one\n");

    let said = stack.folder().join("tail.out");
    let mut follow = Follow(
        stack
            .client(&["tail", &session, "--follow"])
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(&said).unwrap())
            .spawn()
            .unwrap(),
    );
    let mut expected = b"one\n".to_vec();
    for round in 0..3 {
        wait_until("the tail says what is written", || {
            std::fs::read(&said).unwrap() == expected
        });
        let line = format!("later {round}\n");
        run_with_input(&mut stack.client(&["append", &session]), line.as_bytes()).with(DONE);
        expected.extend_from_slice(line.as_bytes());
    }
    wait_until("the tail says the last line", || {
        std::fs::read(&said).unwrap() == expected
    });
    assert!(follow.0.try_wait().unwrap().is_none(), "it follows");
    follow.0.kill().unwrap();
    follow.0.wait().unwrap();
    assert_eq!(std::fs::read(&said).unwrap(), expected);
    assert!(stack.stop().success());
}

/// The names that scripts read stay what they are.
#[tokio::test(flavor = "multi_thread")]
async fn ls_and_show_have_stable_shapes() {
    let mut stack = Stack::start().await;
    assert_eq!(
        client(&stack, &["sessions", "ls", "--json"]).with(DONE).stdout,
        b""
    );
    let first = import(&stack, b"first\n", "team=a");
    let second = import(&stack, b"second\n", "team=b");

    let summary = BTreeSet::from([
        "session_id",
        "owner",
        "labels",
        "parent_session_id",
        "subpath",
        "partition",
        "last_entry_seq",
        "last_checkpoint_seq",
        "generation",
        "lifetime_status",
        "opened_at_ms",
        "updated_at_ms",
    ]);
    let all = client(&stack, &["sessions", "ls", "--json"]).with(DONE).objects();
    let ids: Vec<_> = all
        .iter()
        .map(|session| session["session_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [&second, &first], "newest first");
    for session in &all {
        assert_eq!(keys(session), summary);
        assert_eq!(
            (&session["generation"], &session["last_entry_seq"]),
            (&1.into(), &1.into())
        );
        assert_eq!(session["lifetime_status"], "ended");
        assert_eq!(session["owner"], "local");
        assert!(session["opened_at_ms"].as_u64().unwrap() > 1_600_000_000_000);
    }
    let labelled = client(&stack, &["sessions", "ls", "--json", "--label", "team=a"])
        .with(DONE)
        .objects();
    assert_eq!(labelled.len(), 1);
    assert_eq!(labelled[0]["session_id"], first.as_str());
    assert_eq!(labelled[0]["labels"], serde_json::json!({"team": "a"}));
    let none = client(&stack, &["sessions", "ls", "--json", "--label", "team=c"]).with(DONE);
    assert_eq!(none.stdout, b"");
    client(&stack, &["sessions", "ls", "--label", "no-value"]).with(USAGE);
    let newest = client(&stack, &["sessions", "ls", "--json", "--limit", "1"])
        .with(DONE)
        .object();
    assert_eq!(newest["session_id"], second.as_str());
    let table = client(&stack, &["sessions", "ls"]).with(DONE).text();
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(
        table.starts_with("SESSION") && table.contains("team=a"),
        "{table}"
    );

    let shown = show(&stack, &first);
    let mut described = summary;
    described.extend(["body_length", "quarantined_records", "lifetimes"]);
    assert_eq!(keys(&shown), described);
    assert_eq!(
        (&shown["body_length"], &shown["quarantined_records"]),
        (&6.into(), &0.into())
    );
    let lifetime = &shown["lifetimes"][0];
    let names = [
        "lifetime_id",
        "generation",
        "request_id",
        "base",
        "body_start",
        "applied_entry_seq",
        "status",
        "bound_at_ms",
    ];
    assert_eq!(keys(lifetime), BTreeSet::from(names));
    assert_eq!(
        (&lifetime["base"], &lifetime["applied_entry_seq"]),
        (&0.into(), &1.into())
    );
    assert!(
        client(&stack, &["sessions", "show", &first])
            .with(DONE)
            .text()
            .contains("team=a")
    );
    assert!(stack.stop().success());
}

/// An export reads and binds nothing; a resume binds.
#[tokio::test(flavor = "multi_thread")]
async fn export_binds_nothing_and_resume_does() {
    let mut stack = Stack::start().await;
    let session = import(&stack, b"body\n\0", "kind=export");
    let before = show(&stack, &session);
    let out = stack.folder().join("exported");
    let exported = client(
        &stack,
        &["export", &session, "--json", "--out", out.to_str().unwrap()],
    )
    .with(DONE);
    let names = [
        "session_id",
        "length",
        "sha256",
        "first_entry_seq",
        "last_entry_seq",
        "file",
    ];
    assert_eq!(keys(&exported.object()), BTreeSet::from(names));
    assert_eq!(std::fs::read(&out).unwrap(), b"body\n\0");
    let piped = client(&stack, &["export", &session, "--out", "-"]).with(DONE);
    assert_eq!(piped.stdout, b"body\n\0", "nothing but the body");
    client(&stack, &["export", &session, "--json", "--out", "-"]).with(USAGE);
    assert_eq!(show(&stack, &session), before, "an export changes nothing");

    for generation in 2..4 {
        let out = stack.folder().join(format!("resumed-{generation}"));
        let resumed = client(
            &stack,
            &["resume", &session, "--json", "--out", out.to_str().unwrap()],
        )
        .with(DONE)
        .object();
        let names = [
            "session_id",
            "request_id",
            "lifetime_id",
            "generation",
            "length",
            "sha256",
            "first_entry_seq",
            "last_entry_seq",
            "file",
        ];
        assert_eq!(keys(&resumed), BTreeSet::from(names));
        assert_eq!(resumed["generation"], generation);
        assert_eq!(show(&stack, &session)["generation"], generation);
    }
    // The same request again is the same resume, until another one came after it.
    let again = |out: &str| {
        let args = ["resume", &session, "--json", "--request-id", "mine", "--out", out];
        client(&stack, &args).with(DONE).object()
    };
    assert_eq!(again("mine-1")["lifetime_id"], again("mine-2")["lifetime_id"]);
    assert_eq!(show(&stack, &session)["generation"], 4);
    resume(&stack, &session);
    let superseded = ["resume", &session, "--request-id", "mine", "--out", "mine-3"];
    let ran = client(&stack, &superseded).with(REFUSED);
    let ran = ran.saying(&["use another --request-id, or none"]);
    assert!(!ran.stderr.contains("--take-over"), "{}", ran.stderr);
    assert!(stack.stop().success());
    stack.verify();
}

/// A file that is there stays, nothing is asked of the server, and no failure leaves a part of a file.
#[tokio::test(flavor = "multi_thread")]
async fn a_received_file_is_whole_or_not_there() {
    let mut stack = Stack::start().await;
    let session = import(&stack, b"the body\n", "kind=files");
    let folder = tempfile::tempdir_in(stack.folder()).unwrap();
    let mine = folder.path().join("mine");
    std::fs::write(&mine, b"precious").unwrap();
    let generation = show(&stack, &session)["generation"].clone();
    for command in ["resume", "export"] {
        let args = [command, &session, "--out", mine.to_str().unwrap()];
        client(&stack, &args)
            .with(REFUSED)
            .saying(&["is already there", "--force"]);
        let onto_folder = [
            command,
            &session,
            "--force",
            "--out",
            folder.path().to_str().unwrap(),
        ];
        client(&stack, &onto_folder)
            .with(REFUSED)
            .saying(&["is a folder"]);
    }
    assert_eq!(
        show(&stack, &session)["generation"],
        generation,
        "a refused resume binds nothing"
    );
    let new = folder.path().join("new");
    for command in ["resume", "export"] {
        client(&stack, &[command, UNKNOWN, "--out", new.to_str().unwrap()]).with(NOT_FOUND);
        let nowhere = [
            command,
            UNKNOWN,
            "--out",
            new.to_str().unwrap(),
            "--server",
            "http://127.0.0.1:1",
        ];
        assert_ne!(run(stack.command().args(nowhere)).code, Some(DONE));
    }
    let files: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(files, ["mine"], "nothing is left behind");
    assert_eq!(std::fs::read(&mine).unwrap(), b"precious");

    client(
        &stack,
        &["resume", &session, "--force", "--out", mine.to_str().unwrap()],
    )
    .with(DONE);
    assert_eq!(std::fs::read(&mine).unwrap(), b"the body\n");
    assert!(stack.stop().success());
}

/// What is wrong, and what the caller may not know (invariant opaque-absence).
#[tokio::test(flavor = "multi_thread")]
async fn wrong_ids_and_tokens_have_their_exit_codes() {
    let mut stack = Stack::start().await;
    let session = import(&stack, b"mine\n", "kind=ids");
    let commands: [&[&str]; 5] = [
        &["resume", "ID", "--out", "out"],
        &["export", "ID", "--out", "out"],
        &["sessions", "show", "ID"],
        &["tail", "ID"],
        &["append", "ID"],
    ];
    let strangers = stack.folder().join("strangers");
    std::fs::write(&strangers, "not-a-token-of-this-server\n").unwrap();
    for command in commands {
        let as_owner = |id: &str| client(&stack, &with_id(command, id));
        as_owner(UNKNOWN).with(NOT_FOUND).saying(&["no such session"]);
        for malformed in [
            "nonsense",
            "",
            "../../etc/passwd",
            &session.to_uppercase(),
            &session[1..],
        ] {
            as_owner(malformed).with(USAGE).saying(&["is not a UUID"]);
        }
        let mut as_stranger = stack.command();
        as_stranger
            .args(with_id(command, &session))
            .args(["--server", &stack.endpoint()]);
        run(as_stranger.arg("--token-file").arg(&strangers))
            .with(NOT_FOUND)
            .saying(&["Unauthenticated"]);
    }
    run(stack
        .command()
        .args(["sessions", "ls", "--server", &stack.endpoint()]))
    .with(NOT_FOUND)
    .saying(&["--token-file"]);
    assert!(!stack.folder().join("out").exists());
    assert!(stack.stop().success());
}

fn with_id<'a>(command: &[&'a str], id: &'a str) -> Vec<&'a str> {
    let word = |word: &&'a str| if *word == "ID" { id } else { *word };
    command.iter().map(word).collect()
}

/// A command that follows; killed when dropped.
struct Follow(std::process::Child);

impl Drop for Follow {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
