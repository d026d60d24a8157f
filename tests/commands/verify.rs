//! `wakelog verify` finds what somebody did to the hot tail behind the log's back.

use serde_json::Value;

use crate::postgres::Database;
use crate::ran::{DIFFERENCE, DONE, Ran, import, run, run_with_input};
use crate::support::stack::Stack;

/// Invariant exactly-once-fold: each kind of damage is found, named and mended by nothing but its repair.
#[tokio::test(flavor = "multi_thread")]
async fn verify_finds_every_kind_of_damage() {
    let cases: [(&str, &'static str, &'static str); 5] = [
        (
            "a flipped byte of a body",
            "UPDATE agent_session_transcript_entries SET body = set_byte(body, 0, get_byte(body, 0) # 1)
             WHERE entry_seq = 2",
            "UPDATE agent_session_transcript_entries SET body = set_byte(body, 0, get_byte(body, 0) # 1)
             WHERE entry_seq = 2",
        ),
        (
            "a row that is gone",
            "CREATE TABLE taken AS SELECT * FROM agent_session_transcript_entries WHERE entry_seq = 3;
             DELETE FROM agent_session_transcript_entries WHERE entry_seq = 3",
            "INSERT INTO agent_session_transcript_entries SELECT * FROM taken; DROP TABLE taken",
        ),
        (
            "a row too many",
            "CREATE TABLE more AS SELECT * FROM agent_session_transcript_entries WHERE entry_seq = 3;
             UPDATE more SET entry_seq = 77;
             INSERT INTO agent_session_transcript_entries SELECT * FROM more",
            "DELETE FROM agent_session_transcript_entries WHERE entry_seq = 77; DROP TABLE more",
        ),
        (
            "another owner",
            "UPDATE agent_sessions SET owner = owner || 'x'",
            "UPDATE agent_sessions SET owner = left(owner, -1)",
        ),
        (
            "a session that is gone",
            "CREATE TABLE lost AS SELECT * FROM agent_sessions;
             ALTER TABLE agent_sessions DISABLE TRIGGER ALL;
             DELETE FROM agent_sessions",
            "INSERT INTO agent_sessions SELECT * FROM lost; DROP TABLE lost;
             ALTER TABLE agent_sessions ENABLE TRIGGER ALL",
        ),
    ];
    let database = Database::empty().await;
    let mut stack = Stack::prepare();
    stack.set_up_args(&["--no-discovery", "--database-url", &database.url]);
    stack.up().await;
    let session = import(&stack, b"{\"header\":1}\n", "kind=verify");
    run_with_input(&mut stack.client(&["append", &session]), b"two\nthree\nfour\n").with(DONE);
    let clean = verify(&stack, &database).with(DONE).object();
    assert_eq!(
        (&clean["equal"], &clean["difference_count"]),
        (&Value::Bool(true), &0.into())
    );

    for (name, damage, repair) in cases {
        eprintln!("{name}");
        database.execute(damage).await;
        let found = verify(&stack, &database).with(DIFFERENCE).object();
        assert_eq!(found["equal"], false, "{name}: {found}");
        assert!(
            found["difference_count"].as_u64().unwrap() >= 1,
            "{name}: {found}"
        );
        let named = found["differences"].as_array().unwrap();
        assert!(
            named
                .iter()
                .any(|difference| difference["session_id"] == session.as_str()),
            "{name}: {found}"
        );
        database.execute(repair).await;
        verify(&stack, &database).with(DONE);
    }
    let text = run(stack.command().args([
        "verify",
        "--brokers",
        &stack.brokers(),
        "--database-url",
        &database.url,
    ]));
    assert!(
        text.with(DONE)
            .text()
            .contains("the hot tail equals the fold of the log")
    );
    assert!(stack.stop().success(), "{}", stack.log());
}

#[track_caller]
fn verify(stack: &Stack, database: &Database) -> Ran {
    let brokers = stack.brokers();
    run(stack.command().args([
        "verify",
        "--json",
        "--brokers",
        &brokers,
        "--database-url",
        &database.url,
    ]))
}
