//! Databases whose schema is not this build's, and a stack whose database is a real PostgreSQL.

use std::process::Command;

use crate::postgres::Database;
use crate::ran::{DEPENDENCY, DONE, Ran, USAGE, import, resume, run};
use crate::support::embedded::EmbeddedStack as Stack;

/// Every way in which a schema can be wrong is told apart, by whoever meets it.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_schema_is_refused_and_named() {
    let cases: [(&str, &'static str, &[&str]); 4] = [
        (
            "newer",
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (99, 'from the future', true, '\\x00', 0)",
            &[
                "the schema is at version 99",
                "this build knows",
                "a newer wakelog migrated this database",
            ],
        ),
        (
            "changed",
            "UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 1",
            &["migration 1 was applied with other content"],
        ),
        (
            "gap",
            "DELETE FROM _sqlx_migrations WHERE version = 1",
            &["migration 1 is missing below a newer one"],
        ),
        (
            "half",
            "UPDATE _sqlx_migrations SET success = false WHERE version = 2",
            &["migration 2 is half applied"],
        ),
    ];
    let mut stack = Stack::prepare();
    for (name, damage, texts) in cases {
        let database = Database::empty().await;
        migrate(&stack, &database).with(DONE);
        database.execute(damage).await;
        let migrations = "SELECT sum(version * 2 + success::int)::bigint FROM _sqlx_migrations";
        let before = database.number(migrations).await;
        eprintln!("{name}");
        migrate(&stack, &database).with(DEPENDENCY).saying(texts);
        stack.set_up_args(&["--no-discovery", "--database-url", &database.url]);
        run(&mut stack.up_command()).with(DEPENDENCY).saying(texts);
        verify(&stack, &database).with(DEPENDENCY).saying(texts);
        assert_eq!(
            database.number(migrations).await,
            before,
            "{name}: nothing was changed"
        );
        assert_eq!(database.rows().await, 0);
    }
}

/// A database that nobody has migrated is told of by whoever may not migrate it; `migrate` mends it, any number of times.
#[tokio::test(flavor = "multi_thread")]
async fn migrate_brings_a_schema_up_to_date() {
    let stack = Stack::prepare();
    let database = Database::empty().await;
    verify(&stack, &database)
        .with(DEPENDENCY)
        .saying(&["migration 1 is not applied", "wakelog migrate"]);
    for _ in 0..2 {
        assert_eq!(
            migrate(&stack, &database).with(DONE).text(),
            "the schema is up to date\n"
        );
    }
    // A build that knows one migration more finds one missing and applies it.
    database.execute("DELETE FROM _sqlx_migrations").await;
    verify(&stack, &database)
        .with(DEPENDENCY)
        .saying(&["migration 1 is not applied"]);

    let nowhere = "postgres://me:hunter2@127.0.0.1:1/nowhere";
    let ran = run(stack.command().args(["migrate", "--database-url", nowhere]));
    let ran = ran
        .with(DEPENDENCY)
        .saying(&["the database can't be reached", "--database-url"]);
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);

    let missing = format!("{}_missing", database.url);
    run(stack.command().args(["migrate", "--database-url", &missing]))
        .with(DEPENDENCY)
        .saying(&["_missing\" does not exist\n", "createdb"]);
    run(stack
        .command()
        .args(["migrate", "--database-url", "mysql://me@127.0.0.1/x"]))
    .with(USAGE)
    .saying(&["postgres://", "--database-url"]);
}

/// The embedded log with a database of its own: what was written comes back, also over a restart.
#[tokio::test(flavor = "multi_thread")]
async fn up_works_on_a_database_of_its_own() {
    let database = Database::empty().await;
    let mut stack = Stack::prepare();
    stack.set_up_args(&["--no-discovery", "--database-url", &database.url]);
    stack.up().await;
    let session = import(&stack, b"{\"in\":\"postgres\"}\n\0\xff", "kind=postgres");
    assert_eq!(resume(&stack, &session), b"{\"in\":\"postgres\"}\n\0\xff");
    assert_eq!(database.number("SELECT count(*) FROM agent_sessions").await, 1);
    assert!(stack.stop().success(), "{}", stack.log());
    stack.up().await;
    assert_eq!(resume(&stack, &session), b"{\"in\":\"postgres\"}\n\0\xff");
    assert!(stack.stop().success(), "{}", stack.log());
}

fn migrate(stack: &Stack, database: &Database) -> Ran {
    run(stack.command().args(["migrate", "--database-url", &database.url]))
}

/// The schema is looked at before the log, so that no broker is needed to find it wrong.
fn verify(stack: &Stack, database: &Database) -> Ran {
    let mut verify: Command = stack.command();
    run(verify.args([
        "verify",
        "--brokers",
        "127.0.0.1:1",
        "--database-url",
        &database.url,
    ]))
}
