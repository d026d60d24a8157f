//! The archive of a stopped embedded stack, by hand.

use bytes::Bytes;
use wakelog_proto::v1::AckLevel;

use crate::ran::{DEPENDENCY, DONE, NOT_FOUND, Ran, USAGE, keys, run, wait_until};
use crate::support::embedded::EmbeddedStack as Stack;
use crate::support::load::Loaded;
use crate::support::seed::Entry;

#[track_caller]
fn segments(stack: &Stack, args: &[&str]) -> Ran {
    let mut command = stack.command();
    command.arg("segments").args(args);
    run(command.arg("--data-dir").arg(stack.data_dir()))
}

/// Invariant byte-exact: the archive of a data folder is listed, printed and found good.
#[tokio::test(flavor = "multi_thread")]
async fn byte_exact_segments_of_a_data_folder() {
    let mut stack = Stack::start().await;
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "segments", AckLevel::Store).await;
    let entry = |text: &str, checkpoint| Entry {
        bytes: Bytes::from(format!("{text}\n")),
        checkpoint,
    };
    for (text, checkpoint) in [("one", false), ("two", false), ("all", true), ("more", false)] {
        session.send(entry(text, checkpoint)).await;
    }
    session.drain().await;
    let id = session.lifetime.session_id.clone();
    wait_until("it is archived", || {
        stack.whole_log().contains("archived and pruned")
    });
    segments(&stack, &["verify"]).with(DEPENDENCY);
    assert!(stack.stop().success());

    let row = segments(&stack, &["ls", &id, "--json"]).with(DONE).object();
    let names = [
        "key",
        "session_id",
        "min_entry_seq",
        "max_entry_seq",
        "kind",
        "entries",
        "plain_bytes",
        "object_bytes",
        "object_digest",
        "archived_at_ms",
    ];
    assert_eq!(keys(&row), names.into());
    assert_eq!(
        (&row["min_entry_seq"], &row["max_entry_seq"]),
        (&1.into(), &2.into())
    );
    assert_eq!(
        (&row["kind"], &row["plain_bytes"]),
        (&"superseded".into(), &8.into())
    );
    let key = row["key"].as_str().unwrap();
    assert_eq!(segments(&stack, &["cat", key]).with(DONE).stdout, b"one\ntwo\n");
    let table = segments(&stack, &["ls", "--all"]).with(DONE).text();
    assert!(table.contains(key) && table.starts_with("ENTRIES"), "{table}");

    let report = segments(&stack, &["verify", "--json"]).with(DONE).object();
    let names = [
        "good",
        "segments",
        "object_bytes",
        "objects",
        "missing",
        "damaged",
        "holes",
        "orphans",
        "deleted",
        "staged",
        "foreign",
        "findings",
    ];
    assert_eq!(keys(&report), names.into());
    assert_eq!((&report["good"], &report["segments"]), (&true.into(), &1.into()));
    segments(&stack, &["verify", &id, "--delete"]).with(DONE);

    let unknown = uuid::Uuid::new_v4().to_string();
    segments(&stack, &["ls", &unknown]).with(NOT_FOUND);
    segments(&stack, &["cat", &key.replace(&id, &unknown)]).with(NOT_FOUND);
    segments(&stack, &["cat", "no/key"]).with(USAGE);
    segments(&stack, &["ls"]).with(USAGE);
    segments(&stack, &["verify", "--older-than", "1"]).with(USAGE);
    stack.verify();
}
