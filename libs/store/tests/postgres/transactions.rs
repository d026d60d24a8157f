use std::time::Duration;

use tokio::time::timeout;
use wakelog_store::{BatchWrites, Effect};

use crate::support::Database;
use crate::support::rows::{Owner, TOPIC, part, session, session_with_entries};

on_both_pools!(
    a_batch_that_failed_can_not_be_committed,
    a_batch_that_is_dropped_lets_go_at_once,
    a_large_batch_arrives_whole,
);

async fn a_batch_that_failed_can_not_be_committed(database: Database) {
    let store = database.store().await;
    let owner = Owner::claim(&store).await;
    let mut batch = store.begin_batch(TOPIC, 0, owner.epoch, 0).await.unwrap();
    batch
        .write(&session_with_entries(session(1), &[b"one"]))
        .await
        .unwrap();
    batch
        .write(&session_with_entries(session(1), &[b"one"]))
        .await
        .unwrap_err();
    let error = batch.commit(1, 7).await.unwrap_err();
    assert_eq!(error.effect(), Effect::CertainlyNot, "{error}");
    assert_eq!(database.rows().await, 0);
    assert_eq!(store.progress(TOPIC, 0).await.unwrap().unwrap().next_offset, 0);
}

async fn a_batch_that_is_dropped_lets_go_at_once(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    for _ in 0..20 {
        let mut batch = store.begin_batch(TOPIC, 0, owner.epoch, 0).await.unwrap();
        batch
            .write(&session_with_entries(session(1), &[b"dropped"]))
            .await
            .unwrap();
        drop(batch);
    }
    owner.write(BatchWrites::default()).await;
    assert_eq!(database.rows().await, 0);
}

async fn a_large_batch_arrives_whole(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let body = vec![0xa5; 512 * 1024];
    let mut writes = session_with_entries(session(1), &[]);
    writes.parts = (0..20)
        .rev()
        .map(|number| part(session(1), 1, number, &body))
        .collect();
    writes
        .parts
        .extend((2..3_002).map(|entry| part(session(1), entry, 0, b"small")));
    owner.write(writes).await;
    let length = store.body_length(session(1), 1, 3_001).await.unwrap();
    assert_eq!(length, 20 * 512 * 1024 + 3_000 * 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_begin_leaves_no_transaction_open() {
    let database = Database::empty_single().await;
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    // From "cancelled before anything was sent" to "cancelled while it waits for the row".
    let mut holder = database.raw().await;
    sqlx::raw_sql("BEGIN; SELECT * FROM stream_progress FOR UPDATE")
        .execute(&mut holder)
        .await
        .unwrap();
    for microseconds in (0..4_000).step_by(100) {
        let begin = store.begin_batch(TOPIC, 0, owner.epoch, 0);
        assert!(timeout(Duration::from_micros(microseconds), begin).await.is_err());
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.unwrap();
    owner.write(BatchWrites::default()).await;
    store.progress(TOPIC, 0).await.unwrap();
    assert_eq!(database.open_transactions().await, 0);
}
