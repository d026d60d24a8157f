use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::future::join_all;
use wakelog_store::{BatchWrites, Effect, Error, Options, Progress, Store};

use crate::support::Database;
use crate::support::rows::{Owner, TOPIC, session, session_with_entries, session_write};

on_both_pools!(
    a_first_claim_starts_at_the_beginning_and_a_later_one_goes_on,
    an_epoch_that_was_lost_does_not_come_again,
    an_older_epoch_is_fenced,
    a_batch_that_starts_elsewhere_is_refused,
    a_partition_that_nobody_claimed_takes_no_batch,
);

async fn a_first_claim_starts_at_the_beginning_and_a_later_one_goes_on(database: Database) {
    let store = database.store().await;
    assert_eq!(store.progress(TOPIC, 0).await.unwrap(), None);
    let first = store.claim_partition(TOPIC, 0).await.unwrap();
    assert_eq!((first.next_offset, first.last_record_crc), (0, None));
    let batch = store.begin_batch(TOPIC, 0, first.epoch, 0).await.unwrap();
    batch.commit(42, u32::MAX).await.unwrap();
    let second = store.claim_partition(TOPIC, 0).await.unwrap();
    assert!(second.epoch > first.epoch, "{second:?} after {first:?}");
    assert_eq!((second.next_offset, second.last_record_crc), (42, Some(u32::MAX)));

    let third = store.claim_partition(TOPIC, 3).await.unwrap();
    store.claim_partition("another topic", 1).await.unwrap();
    let folded = Progress {
        partition: 0,
        epoch: second.epoch,
        next_offset: 42,
        last_record_crc: Some(u32::MAX),
    };
    let claimed = Progress {
        partition: 3,
        epoch: third.epoch,
        next_offset: 0,
        last_record_crc: None,
    };
    assert_eq!(store.progress(TOPIC, 0).await.unwrap(), Some(folded));
    assert_eq!(store.progress_of_topic(TOPIC).await.unwrap(), [folded, claimed]);
    assert_eq!(store.folded_topics().await.unwrap(), [TOPIC]);
}

/// Invariant exactly-once-fold: a database that lost a claim does not give its epoch to another owner.
async fn an_epoch_that_was_lost_does_not_come_again(database: Database) {
    let store = database.store().await;
    let lost = store.claim_partition(TOPIC, 0).await.unwrap();
    // Both reads of the clock may be of one millisecond.
    tokio::time::sleep(Duration::from_millis(2)).await;
    database
        .execute("UPDATE stream_progress SET epoch = epoch - 1")
        .await;
    let next = store.claim_partition(TOPIC, 0).await.unwrap();
    assert!(next.epoch > lost.epoch, "{next:?} after {lost:?}");
}

async fn an_older_epoch_is_fenced(database: Database) {
    let store = database.store().await;
    let mut old = Owner::claim(&store).await;
    let mut new = Owner::claim(&store).await;
    let error = old
        .try_write(&session_with_entries(session(1), &[b"old"]))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Fenced { topic, partition: 0, held, current }
            if topic == TOPIC && (*held, *current) == (old.epoch, new.epoch)),
        "{error}"
    );
    assert_eq!(error.effect(), Effect::CertainlyNot);
    assert_eq!(database.rows().await, 0);
    new.write(session_with_entries(session(1), &[b"new"])).await;
    assert_eq!(database.open_transactions().await, 0);
}

async fn a_batch_that_starts_elsewhere_is_refused(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(BatchWrites::default()).await;
    for next_offset in [0, 2] {
        let error = store
            .begin_batch(TOPIC, 0, owner.epoch, next_offset)
            .await
            .unwrap_err();
        assert!(
            matches!(error, Error::OffsetMismatch { held, current: 1, .. } if held == next_offset),
            "{error}"
        );
        assert_eq!(error.effect(), Effect::CertainlyNot);
    }
    owner.write(BatchWrites::default()).await;
}

async fn a_partition_that_nobody_claimed_takes_no_batch(database: Database) {
    let store = database.store().await;
    let error = store.begin_batch(TOPIC, 0, 1, 0).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Fenced {
                held: 1,
                current: 0,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_claims_have_different_epochs() {
    let store = Database::empty().await.store().await;
    let claims = join_all((0..20).map(|_| store.claim_partition(TOPIC, 0))).await;
    let epochs: BTreeSet<i64> = claims.into_iter().map(|claim| claim.unwrap().epoch).collect();
    assert_eq!(epochs.len(), 20, "{epochs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_owner_is_terminated_and_stores_nothing() {
    let database = Database::empty().await;
    let (frozen, rival) = (database.store().await, database.connect().await);
    let owner = Owner::claim(&frozen).await;
    let mut batch = frozen.begin_batch(TOPIC, 0, owner.epoch, 0).await.unwrap();
    batch
        .write(&session_with_entries(session(1), &[b"frozen"]))
        .await
        .unwrap();

    let started = Instant::now();
    let claim = rival.claim_partition(TOPIC, 0).await.unwrap();
    assert!(claim.epoch > owner.epoch, "{claim:?} after {}", owner.epoch);
    assert_eq!((claim.next_offset, claim.last_record_crc), (0, None));
    let bound = database.options().lock_timeout * 2 + Duration::from_secs(2);
    assert!(started.elapsed() < bound, "{:?}", started.elapsed());

    let error = batch.commit(1, 7).await.unwrap_err();
    assert!(matches!(error, Error::BatchAborted(_)), "{error}");
    assert_eq!(error.effect(), Effect::CertainlyNot);
    assert_eq!(database.rows().await, 0);
    // The pool of the frozen owner gets over it.
    let error = frozen.begin_batch(TOPIC, 0, owner.epoch, 0).await.unwrap_err();
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_froze_after_it_moved_the_progress_is_terminated() {
    let database = Database::empty().await;
    let store = database.store().await;
    let owner = Owner::claim(&store).await;
    let mut frozen = database.raw().await;
    sqlx::raw_sql(
        "BEGIN; SELECT * FROM stream_progress FOR UPDATE; SAVEPOINT inner_one;
         UPDATE stream_progress SET next_offset = 5",
    )
    .execute(&mut frozen)
    .await
    .unwrap();
    let claim = store.claim_partition(TOPIC, 0).await.unwrap();
    assert!(claim.epoch > owner.epoch, "{claim:?} after {}", owner.epoch);
    assert_eq!((claim.next_offset, claim.last_record_crc), (0, None));
    assert!(sqlx::raw_sql("COMMIT").execute(&mut frozen).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rivals_that_wait_for_a_frozen_owner_do_not_terminate_each_other() {
    let database = Database::empty().await;
    let store = database.store().await;
    let owner = Owner::claim(&store).await;
    let mut frozen = database.raw().await;
    sqlx::raw_sql("BEGIN; SELECT * FROM stream_progress FOR UPDATE")
        .execute(&mut frozen)
        .await
        .unwrap();
    let claims = join_all((0..4).map(|_| store.claim_partition(TOPIC, 0))).await;
    let epochs: BTreeSet<i64> = claims.into_iter().map(|claim| claim.unwrap().epoch).collect();
    assert_eq!(epochs.len(), 4, "{epochs:?}");
    assert!(
        epochs.first() > Some(&owner.epoch),
        "{epochs:?} after {}",
        owner.epoch
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_on_a_single_connection_terminates_nobody() {
    let database = Database::empty_single().await;
    let store = database.store().await;
    store.claim_partition(TOPIC, 0).await.unwrap();
    let mut holder = database.raw().await;
    sqlx::raw_sql("BEGIN; SELECT * FROM stream_progress FOR UPDATE")
        .execute(&mut holder)
        .await
        .unwrap();
    let error = store.claim_partition(TOPIC, 0).await.unwrap_err();
    assert!(matches!(error, Error::LockTimedOut { .. }), "{error}");
    sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_of_another_partition_is_left_alone() {
    let database = Database::empty().await;
    let (store, rival) = (database.store().await, database.connect().await);
    let frozen = store.claim_partition(TOPIC, 0).await.unwrap();
    let healthy = store.claim_partition(TOPIC, 1).await.unwrap();
    let frozen_batch = store.begin_batch(TOPIC, 0, frozen.epoch, 0).await.unwrap();
    let mut healthy_batch = store.begin_batch(TOPIC, 1, healthy.epoch, 0).await.unwrap();
    let write = wakelog_store::SessionWrite {
        partition: 1,
        ..session_write(session(1))
    };
    healthy_batch
        .write(&BatchWrites {
            sessions: vec![write],
            ..BatchWrites::default()
        })
        .await
        .unwrap();

    rival.claim_partition(TOPIC, 0).await.unwrap();
    healthy_batch.commit(1, 7).await.unwrap();
    assert!(frozen_batch.commit(1, 7).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_ends_a_transaction_that_does_nothing() {
    let database = Database::empty().await;
    database.store().await.close().await;
    let bound = Duration::from_millis(200);
    let options = Options {
        idle_in_transaction_timeout: bound,
        ..database.options()
    };
    let store = Store::connect(options).await.unwrap();
    let owner = Owner::claim(&store).await;
    let mut batch = store.begin_batch(TOPIC, 0, owner.epoch, 0).await.unwrap();
    tokio::time::sleep(bound * 3).await;
    let error = batch
        .write(&session_with_entries(session(1), &[b"late"]))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::BatchAborted(_)), "{error}");
    assert_eq!(error.effect(), Effect::CertainlyNot);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_waits_for_the_row_no_longer_than_the_lock_time_out() {
    let database = Database::empty().await;
    let store = database.store().await;
    let owner = Owner::claim(&store).await;
    let held = store.begin_batch(TOPIC, 0, owner.epoch, 0).await.unwrap();
    let error = store.begin_batch(TOPIC, 0, owner.epoch, 0).await.unwrap_err();
    assert!(matches!(error, Error::LockTimedOut { .. }), "{error}");
    assert_eq!(error.effect(), Effect::CertainlyNot);
    held.commit(1, 7).await.unwrap();
}
