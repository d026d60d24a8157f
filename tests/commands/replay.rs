//! A database is built from the data folder of a stopped embedded stack.

use crate::postgres::Database;
use crate::ran::{
    DEPENDENCY, DONE, NOT_FOUND, REFUSED, Ran, USAGE, client, import, keys, run, run_with_input, wait_until,
};
use crate::support::embedded::EmbeddedStack as Stack;

#[track_caller]
fn replay(stack: &Stack, args: &[&str]) -> Ran {
    let mut command = stack.command();
    command.arg("replay").args(args);
    run(command.arg("--data-dir").arg(stack.data_dir()))
}

/// Invariants exactly-once-fold, byte-exact: an embedded stack moves to a PostgreSQL of the user's own, and its sessions go on
/// there.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_of_an_embedded_stack_into_a_database_of_its_own() {
    let mut stack = Stack::start().await;
    let session = import(&stack, b"{\"header\":1}\n", "kind=replay");
    run_with_input(&mut stack.client(&["append", &session]), b"two\nthree\n").with(DONE);
    let erased = import(&stack, b"erased\n", "kind=erased");
    client(&stack, &["erase", &erased, "--yes"]).with(DONE);
    wait_until("a state is archived", || {
        stack.whole_log().contains("archived a session's state")
    });
    let database = Database::empty().await;
    replay(&stack, &["--into", &database.url]).with(DEPENDENCY);
    assert!(stack.stop().success());

    let text = replay(&stack, &["--into", &database.url]).with(DONE).text();
    assert!(text.contains("the database is built"), "{text}");
    replay(&stack, &["--into", &database.url])
        .with(REFUSED)
        .saying(&["by a replay that has finished", "an empty database"]);
    let from_archive = Database::empty().await;
    let report = replay(&stack, &["--into", &from_archive.url, "--from-archive", "--json"])
        .with(DONE)
        .object();
    let names = [
        "complete",
        "finished",
        "restored_sessions",
        "restored_segments",
        "erased_sessions",
        "partitions",
        "missing_count",
        "missing",
    ];
    assert_eq!(keys(&report), names.into());
    assert_eq!(
        (&report["complete"], &report["restored_sessions"]),
        (&true.into(), &0.into()),
        "the topic has everything: {report}"
    );

    stack.set_up_args(&["--no-discovery", "--database-url", &database.url]);
    stack.up().await;
    let exported = client(&stack, &["export", &session, "--out", "-"]).with(DONE);
    assert_eq!(exported.stdout, b"{\"header\":1}\ntwo\nthree\n");
    run_with_input(&mut stack.client(&["append", &session]), b"four\n").with(DONE);
    client(&stack, &["sessions", "show", &erased]).with(NOT_FOUND);
    assert!(stack.stop().success(), "{}", stack.log());
}

/// What does not fit is named before anything is written.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_of_what_is_not_there_is_refused() {
    let stack = Stack::prepare();
    let database = Database::empty().await;
    replay(&stack, &["--into", &database.url])
        .with(NOT_FOUND)
        .saying(&["holds no embedded stack"]);
    replay(&stack, &[]).with(USAGE).saying(&["--into"]);
    let brokers = ["--brokers", "127.0.0.1:1"];
    replay(
        &stack,
        &[&["--into", &database.url, "--from-archive"], &brokers[..]].concat(),
    )
    .with(USAGE)
    .saying(&["s3_bucket"]);
}
