//! `wakelog verify` finds what somebody did to the hot tail behind the log's back.

use crate::postgres::Database;
use crate::ran::{DIFFERENCE, DONE, Ran, import, run, run_with_input};
use crate::support::embedded::EmbeddedStack as Stack;

/// What is done to the hot tail, and how it is undone.
struct Damage {
    name: &'static str,
    kind: &'static str,
    damage: &'static str,
    repair: &'static str,
}

/// Invariant exactly-once-fold: each kind of damage is found and named, and nothing is once it is repaired.
#[tokio::test(flavor = "multi_thread")]
async fn verify_finds_damaged_entries_states_and_lifetimes() {
    finds_each(&[
        Damage {
            name: "a flipped bit of a body",
            kind: "body",
            damage: "UPDATE agent_session_transcript_entries
                     SET body = set_byte(body, 0, get_byte(body, 0) # 1) WHERE entry_seq = 2",
            repair: "UPDATE agent_session_transcript_entries
                     SET body = set_byte(body, 0, get_byte(body, 0) # 1) WHERE entry_seq = 2",
        },
        Damage {
            name: "a row that is gone",
            kind: "part",
            damage:
                "CREATE TABLE taken AS SELECT * FROM agent_session_transcript_entries WHERE entry_seq = 3;
                     DELETE FROM agent_session_transcript_entries WHERE entry_seq = 3",
            repair: "INSERT INTO agent_session_transcript_entries SELECT * FROM taken; DROP TABLE taken",
        },
        Damage {
            name: "a row too many",
            kind: "part",
            damage: "CREATE TABLE more AS SELECT * FROM agent_session_transcript_entries WHERE entry_seq = 3;
                     UPDATE more SET entry_seq = 77;
                     INSERT INTO agent_session_transcript_entries SELECT * FROM more",
            repair: "DELETE FROM agent_session_transcript_entries WHERE entry_seq = 77; DROP TABLE more",
        },
        Damage {
            name: "a checkpoint that was none",
            kind: "part",
            damage: "UPDATE agent_session_transcript_entries SET checkpoint = true WHERE entry_seq = 4",
            repair: "UPDATE agent_session_transcript_entries SET checkpoint = false WHERE entry_seq = 4",
        },
        Damage {
            name: "a state of another time",
            kind: "state",
            damage: "UPDATE agent_sessions SET fold_state = fold_state || '\\x00'",
            repair: "UPDATE agent_sessions SET fold_state = substr(fold_state, 1, length(fold_state) - 1)",
        },
        Damage {
            name: "a lifetime that wrote more",
            kind: "lifetime",
            damage: "UPDATE session_lifetimes SET applied_seq = applied_seq + 1 WHERE generation = 1",
            repair: "UPDATE session_lifetimes SET applied_seq = applied_seq - 1 WHERE generation = 1",
        },
        Damage {
            name: "a session that is gone",
            kind: "session",
            damage: "CREATE TABLE lost AS SELECT * FROM agent_sessions; DELETE FROM agent_sessions",
            repair: "INSERT INTO agent_sessions SELECT * FROM lost; DROP TABLE lost",
        },
    ])
    .await;
}

/// The columns that readers use instead of the state, and who may read.
#[tokio::test(flavor = "multi_thread")]
async fn verify_finds_damaged_owners_readers_and_cursors() {
    finds_each(&[
        Damage {
            name: "another owner",
            kind: "column",
            damage: "UPDATE agent_sessions SET owner = owner || 'x'",
            repair: "UPDATE agent_sessions SET owner = left(owner, -1)",
        },
        Damage {
            name: "an end that is too early",
            kind: "column",
            damage: "UPDATE agent_sessions SET last_entry_seq = last_entry_seq - 1",
            repair: "UPDATE agent_sessions SET last_entry_seq = last_entry_seq + 1",
        },
        Damage {
            name: "a reader whom nobody let in",
            kind: "column",
            damage: "INSERT INTO session_subscribers SELECT session_id, 'stranger', 1 FROM agent_sessions",
            repair: "DELETE FROM session_subscribers",
        },
        Damage {
            name: "a pin on another partition",
            kind: "column",
            damage: "UPDATE session_pins SET partition = partition + 1",
            repair: "UPDATE session_pins SET partition = partition - 1",
        },
    ])
    .await;
}

async fn finds_each(damages: &[Damage]) {
    let database = Database::empty().await;
    let mut stack = Stack::prepare();
    stack.set_up_args(&["--no-discovery", "--database-url", &database.url]);
    stack.up().await;
    let session = import(&stack, b"{\"header\":1}\n", "kind=verify");
    run_with_input(&mut stack.client(&["append", &session]), b"two\nthree\nfour\n").with(DONE);
    let clean = verify(&stack, &database, &["--json"]).with(DONE).object();
    assert_eq!(
        (&clean["equal"], &clean["difference_count"]),
        (&true.into(), &0.into())
    );

    for Damage {
        name,
        kind,
        damage,
        repair,
    } in damages
    {
        eprintln!("{name}");
        database.execute(damage).await;
        let found = verify(&stack, &database, &["--json"]).with(DIFFERENCE).object();
        assert_eq!(found["equal"], false, "{name}: {found}");
        let listed = found["differences"].as_array().unwrap();
        let is_it = |difference: &serde_json::Value| {
            difference["kind"] == *kind && difference["session_id"] == session.as_str()
        };
        assert!(listed.iter().any(is_it), "{name}: {found}");
        let text = verify(&stack, &database, &[]).with(DIFFERENCE).text();
        assert!(text.contains(&session), "{name}: {text}");
        database.execute(repair).await;
        verify(&stack, &database, &["--json"]).with(DONE);
    }
    let text = verify(&stack, &database, &[]).with(DONE).text();
    assert!(
        text.contains("hot tail and archive equal the fold of the log"),
        "{text}"
    );
    assert!(stack.stop().success(), "{}", stack.log());
}

#[track_caller]
fn verify(stack: &Stack, database: &Database, more: &[&str]) -> Ran {
    let mut verify = stack.command();
    verify.args([
        "verify",
        "--database-url",
        &database.url,
        "--brokers",
        &stack.brokers(),
    ]);
    run(verify.args(more))
}
