use futures::future::join_all;
use wakelog_store::Error;

use crate::support::Database;

on_both_pools!(
    an_empty_database_is_migrated_and_again_changes_nothing,
    a_database_without_the_schema_is_refused,
    a_newer_schema_is_refused_and_not_touched,
    a_gap_in_the_applied_migrations_is_refused,
    a_changed_migration_is_refused,
    a_half_applied_migration_is_refused,
);

async fn an_empty_database_is_migrated_and_again_changes_nothing(database: Database) {
    let store = database.connect().await;
    store.migrate().await.unwrap();
    let first = database.number("SELECT count(*) FROM _sqlx_migrations").await;
    store.migrate().await.unwrap();
    store.check_schema().await.unwrap();
    assert_eq!(
        database.number("SELECT count(*) FROM _sqlx_migrations").await,
        first
    );
    assert_eq!(database.rows().await, 0);
}

async fn a_database_without_the_schema_is_refused(database: Database) {
    let error = database.connect().await.check_schema().await.unwrap_err();
    assert!(matches!(error, Error::MigrationMissing { version: 1 }), "{error}");
}

async fn a_newer_schema_is_refused_and_not_touched(database: Database) {
    let store = database.store().await;
    database
        .execute(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (9000, 'of a later build', true, '\\x00', 0)",
        )
        .await;
    for outcome in [store.check_schema().await, store.migrate().await] {
        assert!(
            matches!(outcome, Err(Error::SchemaNewer { found: 9000, .. })),
            "{outcome:?}"
        );
    }
}

async fn a_gap_in_the_applied_migrations_is_refused(database: Database) {
    let store = database.store().await;
    database
        .execute("DELETE FROM _sqlx_migrations WHERE version = 1")
        .await;
    for outcome in [store.check_schema().await, store.migrate().await] {
        assert!(
            matches!(outcome, Err(Error::SchemaGap { missing: 1 })),
            "{outcome:?}"
        );
    }
}

async fn a_changed_migration_is_refused(database: Database) {
    let store = database.store().await;
    database
        .execute("UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 2")
        .await;
    for outcome in [store.check_schema().await, store.migrate().await] {
        assert!(
            matches!(outcome, Err(Error::MigrationChanged { version: 2 })),
            "{outcome:?}"
        );
    }
}

async fn a_half_applied_migration_is_refused(database: Database) {
    let store = database.store().await;
    database
        .execute("UPDATE _sqlx_migrations SET success = false WHERE version = 2")
        .await;
    for outcome in [store.check_schema().await, store.migrate().await] {
        assert!(
            matches!(outcome, Err(Error::MigrationDirty { version: 2 })),
            "{outcome:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_that_start_at_once_migrate_once() {
    let database = Database::empty().await;
    let stores = join_all((0..3).map(|_| database.connect())).await;
    let tasks = stores
        .into_iter()
        .map(|store| tokio::spawn(async move { store.migrate().await }));
    for outcome in join_all(tasks).await {
        outcome.unwrap().unwrap();
    }
    database.connect().await.check_schema().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_waits_longer_than_one_lock_time_out() {
    let database = Database::empty().await;
    let store = database.connect().await;
    // What an earlier migrator that takes long would hold.
    let mut earlier = database.raw().await;
    sqlx::raw_sql("BEGIN; CREATE TABLE agent_sessions (held integer)")
        .execute(&mut earlier)
        .await
        .unwrap();
    let migrating = tokio::spawn(async move { store.migrate().await });
    tokio::time::sleep(database.options().lock_timeout * 3).await;
    assert!(!migrating.is_finished());
    sqlx::raw_sql("ROLLBACK").execute(&mut earlier).await.unwrap();
    migrating.await.unwrap().unwrap();
}
