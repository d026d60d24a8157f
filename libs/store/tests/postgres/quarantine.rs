use std::collections::BTreeMap;

use sqlx::Row as _;
use wakelog_store::{BatchWrites, QuarantinedRecord};

use crate::support::Database;
use crate::support::rows::{Owner, TOPIC, quarantined, session};

on_both_pools!(
    a_key_keeps_sixty_four_raw_records_over_several_batches,
    a_key_keeps_one_mebibyte_raw,
    any_bytes_are_kept_as_they_are,
    records_are_counted_by_reason_and_by_session,
);

async fn kept(database: &Database, key: &[u8]) -> (i64, i64) {
    let mut connection = database.raw().await;
    sqlx::query_as("SELECT count(*), count(raw) FROM quarantined_records WHERE record_key = $1")
        .bind(key)
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

async fn a_key_keeps_sixty_four_raw_records_over_several_batches(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    for offsets in [0..40, 40..80] {
        let quarantined = offsets
            .map(|offset| quarantined(offset, b"noisy", b"raw"))
            .collect();
        owner
            .write(BatchWrites {
                quarantined,
                ..BatchWrites::default()
            })
            .await;
    }
    owner
        .write(BatchWrites {
            quarantined: vec![quarantined(80, b"quiet", b"raw")],
            ..BatchWrites::default()
        })
        .await;
    assert_eq!(kept(&database, b"noisy").await, (80, 64));
    assert_eq!(kept(&database, b"quiet").await, (1, 1));
    let beyond = "SELECT count(*) FROM quarantined_records
                  WHERE raw IS NULL AND raw_length = 3 AND raw_sha256 = sha256('raw') AND record_offset >= 64";
    assert_eq!(database.number(beyond).await, 16);
}

async fn a_key_keeps_one_mebibyte_raw(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let large = vec![1; 600 * 1024];
    let huge = vec![1; 1024 * 1024 + 1];
    owner
        .write(BatchWrites {
            quarantined: vec![
                quarantined(0, b"a", &large),
                quarantined(1, b"a", &large),
                quarantined(2, b"a", b"small"),
                quarantined(3, b"b", &huge),
            ],
            ..BatchWrites::default()
        })
        .await;
    assert_eq!(kept(&database, b"a").await, (3, 2));
    assert_eq!(kept(&database, b"b").await, (1, 0));
    assert_eq!(
        database
            .number("SELECT record_offset FROM quarantined_records WHERE raw_length = 614400 AND raw IS NULL")
            .await,
        1
    );
}

async fn any_bytes_are_kept_as_they_are(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let raw = b"\0\xff\xfe not UTF-8 \0";
    let long_key = vec![0xff; 5_000];
    let odd = QuarantinedRecord {
        detail: "a\0b".to_owned(),
        ..quarantined(0, raw, raw)
    };
    owner
        .write(BatchWrites {
            quarantined: vec![
                odd,
                quarantined(1, &long_key, b""),
                quarantined(2, b"", b"no key"),
            ],
            ..BatchWrites::default()
        })
        .await;
    let mut connection = database.raw().await;
    let row = sqlx::query("SELECT record_key, raw FROM quarantined_records WHERE record_offset = 0")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(row.get::<Vec<u8>, _>("record_key"), raw);
    assert_eq!(row.get::<Vec<u8>, _>("raw"), raw);
    assert_eq!(
        database.number("SELECT count(*) FROM quarantined_records").await,
        3
    );
}

async fn records_are_counted_by_reason_and_by_session(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let key = session(1).to_string().into_bytes();
    let fenced = QuarantinedRecord {
        reason: "fenced",
        ..quarantined(2, &key, b"raw")
    };
    let elsewhere = QuarantinedRecord {
        partition: 1,
        ..quarantined(3, &key, b"raw")
    };
    owner
        .write(BatchWrites {
            quarantined: vec![
                quarantined(0, &key, b""),
                quarantined(1, b"other", b""),
                fenced,
                elsewhere,
            ],
            ..BatchWrites::default()
        })
        .await;
    let expected = BTreeMap::from([("fenced".to_owned(), 1), ("malformed".to_owned(), 2)]);
    assert_eq!(store.quarantine_counts(TOPIC, 0).await.unwrap(), expected);
    assert_eq!(store.quarantined_of_session(session(1)).await.unwrap(), 3);
    assert_eq!(store.quarantined_of_session(session(2)).await.unwrap(), 0);
}
