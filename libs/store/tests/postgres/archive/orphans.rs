use std::time::Duration;

use sqlx::PgConnection;
use wakelog_store::{BatchWrites, Error, Flush, Flushed, Refusal, Staged, StagedObject};

use crate::support::Database;
use crate::support::archive::{entries, hot_entries, object, segment_key, stage, stage_and_flush};
use crate::support::rows::{Owner, session};

on_both_pools!(
    an_object_is_staged_until_it_is_condemned_and_again_once_that_is_forgotten,
    an_object_that_was_staged_lately_is_not_condemned,
    an_object_that_nobody_staged_is_condemned,
    a_condemned_object_is_found_until_it_is_forgotten,
    put_before_prune_a_recorded_object_is_never_condemned,
    an_erased_session_stages_nothing,
    a_key_is_staged_for_one_session,
    put_before_prune_a_flush_that_waits_for_a_condemnation_is_refused,
    put_before_prune_a_condemnation_that_waits_for_a_flush_is_refused,
    a_stage_that_waits_for_a_condemnation_is_refused,
    a_condemnation_that_waits_for_a_stage_is_refused,
);

const LONG: Duration = Duration::from_secs(3_600);

/// A transaction of somebody else that has run these statements and not ended yet.
async fn open_transaction(database: &Database, statements: &'static str) -> PgConnection {
    let mut connection = database.raw().await;
    sqlx::raw_sql("BEGIN").execute(&mut connection).await.unwrap();
    sqlx::raw_sql(statements).execute(&mut connection).await.unwrap();
    connection
}

async fn end(mut connection: PgConnection) {
    sqlx::raw_sql("COMMIT").execute(&mut connection).await.unwrap();
}

async fn an_object_is_staged_until_it_is_condemned_and_again_once_that_is_forgotten(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 5, 5)).await;
    let key = segment_key(session(1), 1, 4);
    let first = stage(&store, session(1), &key).await;
    assert_eq!(stage(&store, session(1), &key).await, first);
    let staged = store.staged_objects(session(1)).await.unwrap();
    let [
        StagedObject {
            key: found,
            age,
            condemned: false,
            ..
        },
    ] = staged.as_slice()
    else {
        panic!("{staged:?}");
    };
    assert_eq!(found, &key);
    assert!(*age < LONG);
    // What is not condemned is not forgotten.
    store.forget_condemned(&key).await.unwrap();
    assert_eq!(store.staged_objects(session(1)).await.unwrap().len(), 1);

    let condemn = async || {
        store
            .condemn_object(session(1), &key, Duration::ZERO)
            .await
            .unwrap()
    };
    assert!(condemn().await);
    assert!(store.staged_objects(session(1)).await.unwrap()[0].condemned);
    for _ in 0..2 {
        assert_eq!(
            store.stage_object(session(1), &key).await.unwrap(),
            Staged::Condemned
        );
    }
    // Whoever condemned it may have died: the next one goes on, however young the row is.
    assert!(store.condemn_object(session(1), &key, LONG).await.unwrap());
    store.forget_condemned(&key).await.unwrap();
    assert!(store.staged_objects(session(1)).await.unwrap().is_empty());
    assert_ne!(stage(&store, session(1), &key).await, first);
}

async fn an_object_that_was_staged_lately_is_not_condemned(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 5, 5)).await;
    let key = segment_key(session(1), 1, 4);
    stage(&store, session(1), &key).await;
    assert!(!store.condemn_object(session(1), &key, LONG).await.unwrap());
    assert!(!store.staged_objects(session(1)).await.unwrap()[0].condemned);
    database
        .execute("UPDATE archive_staged_objects SET staged_at = now() - interval '2 hours'")
        .await;
    // Staged again, it is young again.
    stage(&store, session(1), &key).await;
    assert!(!store.condemn_object(session(1), &key, LONG).await.unwrap());
    database
        .execute("UPDATE archive_staged_objects SET staged_at = now() - interval '2 hours'")
        .await;
    assert!(store.condemn_object(session(1), &key, LONG).await.unwrap());
    // An age beyond the database's calendar is no error.
    stage(&store, session(1), "another").await;
    assert!(
        !store
            .condemn_object(session(1), "another", Duration::MAX)
            .await
            .unwrap()
    );
}

async fn an_object_that_nobody_staged_is_condemned(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 5, 5)).await;
    let key = segment_key(session(1), 1, 4);
    assert!(store.condemn_object(session(1), &key, LONG).await.unwrap());
    assert_eq!(
        store.stage_object(session(1), &key).await.unwrap(),
        Staged::Condemned
    );
}

async fn put_before_prune_a_recorded_object_is_never_condemned(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 5, 5)).await;
    let object = object(session(1), 1, 4);
    stage_and_flush(&store, session(1), object.clone()).await;
    let condemn = async || {
        store
            .condemn_object(session(1), &object.key, Duration::ZERO)
            .await
            .unwrap()
    };
    assert!(!condemn().await);
    // Somebody who did not know staged it again: that row protects nothing and goes.
    stage(&store, session(1), &object.key).await;
    assert!(!condemn().await);
    assert!(store.staged_objects(session(1)).await.unwrap().is_empty());
    assert!(store.segment(session(1), &object.key).await.unwrap().is_some());
}

async fn an_erased_session_stages_nothing(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 5, 5)).await;
    owner
        .write(BatchWrites {
            erased: vec![session(1)],
            ..BatchWrites::default()
        })
        .await;
    let key = segment_key(session(1), 1, 4);
    assert_eq!(
        store.stage_object(session(1), &key).await.unwrap(),
        Staged::Erased
    );
    assert!(store.staged_objects(session(1)).await.unwrap().is_empty());
}

async fn a_key_is_staged_for_one_session(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 5, 5)).await;
    owner.write(entries(session(2), 1, 5, 5)).await;
    let object = object(session(1), 1, 4);
    let staging = stage(&store, session(1), &object.key).await;
    let error = store.stage_object(session(2), &object.key).await.unwrap_err();
    assert!(matches!(error, Error::Bug(_)), "{error}");
    let flush = Flush {
        session: session(2),
        staging,
        object,
    };
    assert_eq!(
        store.flush(&flush).await.unwrap(),
        Flushed::Refused(Refusal::NotStaged)
    );
}

async fn put_before_prune_a_flush_that_waits_for_a_condemnation_is_refused(database: Database) {
    let store = database.patient_store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 5, 5)).await;
    let object = object(session(1), 1, 4);
    let staging = stage(&store, session(1), &object.key).await;
    let condemnation = open_transaction(
        &database,
        "UPDATE archive_staged_objects SET condemned_at = now()",
    )
    .await;
    let flushing = tokio::spawn({
        let store = store.clone();
        let flush = Flush {
            session: session(1),
            staging,
            object,
        };
        async move { store.flush(&flush).await.unwrap() }
    });
    database.wait_until_somebody_waits().await;
    end(condemnation).await;
    assert_eq!(flushing.await.unwrap(), Flushed::Refused(Refusal::NotStaged));
    assert_eq!(hot_entries(&store, session(1)).await, [1, 2, 3, 4, 5]);
}

async fn put_before_prune_a_condemnation_that_waits_for_a_flush_is_refused(database: Database) {
    let store = database.patient_store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 5, 5)).await;
    stage(&store, session(1), "the key").await;
    // What a flush does, stopped before COMMIT: the condemnation saw no row of the manifest when it began.
    let flush = open_transaction(
        &database,
        "DELETE FROM archive_staged_objects;
         INSERT INTO agent_session_archive_segments
             (session_id, object_key, min_entry_seq, max_entry_seq, kind, entries, plain_bytes, object_bytes,
              object_digest)
         VALUES ('00000000-0000-0000-0000-000000000001', 'the key', 1, 4, 'superseded', 4, 4, 4,
                 decode(repeat('00', 32), 'hex'))",
    )
    .await;
    let condemning = tokio::spawn({
        let store = store.clone();
        async move {
            store
                .condemn_object(session(1), "the key", Duration::ZERO)
                .await
                .unwrap()
        }
    });
    database.wait_until_somebody_waits().await;
    end(flush).await;
    assert!(!condemning.await.unwrap());
    assert!(store.staged_objects(session(1)).await.unwrap().is_empty());
}

async fn a_stage_that_waits_for_a_condemnation_is_refused(database: Database) {
    let store = database.patient_store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 5, 5)).await;
    let condemnation = open_transaction(
        &database,
        "INSERT INTO archive_staged_objects (object_key, session_id, condemned_at)
         VALUES ('the key', '00000000-0000-0000-0000-000000000001', now())",
    )
    .await;
    let staging = tokio::spawn({
        let store = store.clone();
        async move { store.stage_object(session(1), "the key").await.unwrap() }
    });
    database.wait_until_somebody_waits().await;
    end(condemnation).await;
    assert_eq!(staging.await.unwrap(), Staged::Condemned);
}

async fn a_condemnation_that_waits_for_a_stage_is_refused(database: Database) {
    let store = database.patient_store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 5, 5)).await;
    let staging = open_transaction(
        &database,
        "INSERT INTO archive_staged_objects (object_key, session_id)
         VALUES ('the key', '00000000-0000-0000-0000-000000000001')",
    )
    .await;
    let condemning = tokio::spawn({
        let store = store.clone();
        async move { store.condemn_object(session(1), "the key", LONG).await.unwrap() }
    });
    database.wait_until_somebody_waits().await;
    end(staging).await;
    assert!(!condemning.await.unwrap());
    assert!(!store.staged_objects(session(1)).await.unwrap()[0].condemned);
}

async fn a_condemned_object_is_found_until_it_is_forgotten(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 5, 5)).await;
    let (condemned, staged) = (segment_key(session(1), 1, 3), segment_key(session(1), 1, 4));
    stage(&store, session(1), &staged).await;
    let left_behind = async |age| store.condemned_objects(age, 10).await.unwrap();
    assert!(left_behind(Duration::ZERO).await.is_empty());
    assert!(store.condemn_object(session(1), &condemned, LONG).await.unwrap());
    assert_eq!(left_behind(Duration::ZERO).await, [condemned.as_str()]);
    assert!(left_behind(LONG).await.is_empty());
    assert!(
        store
            .condemned_objects(Duration::ZERO, 0)
            .await
            .unwrap()
            .is_empty()
    );
    store.forget_condemned(&condemned).await.unwrap();
    assert!(left_behind(Duration::ZERO).await.is_empty());
}
