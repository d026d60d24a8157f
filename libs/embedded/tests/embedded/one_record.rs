//! One record goes through all three embedded engines in one process, and all of it is there after a restart.

use aws_sdk_s3::primitives::ByteStream;
use sqlx::{Connection, PgConnection};
use wakelog_embedded::Engines;

use crate::common;

const BODY: &[u8] = b"{\"line\":\"\\u0000\"}\n\0\xff";
const KEY: &str = "segments/1";

async fn row(engines: &Engines) -> Vec<u8> {
    let mut connection = PgConnection::connect(&engines.database_url().unwrap())
        .await
        .unwrap();
    let body: Vec<u8> = sqlx::query_scalar("SELECT body FROM part WHERE seq = 1")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    body
}

async fn object(engines: &Engines) -> Vec<u8> {
    let address = engines.archive().unwrap();
    let got = common::s3(&address)
        .get_object()
        .bucket(&address.bucket)
        .key(KEY)
        .send()
        .await
        .unwrap();
    got.body.collect().await.unwrap().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_record_goes_through_all_three_engines_and_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let engines = common::start(&folder.path().join("data")).await;
    let first_brokers = engines.brokers().unwrap();

    common::create_topic(&first_brokers).await;
    let offset = common::produce(&first_brokers, BODY).await;
    let consumed = common::consume(&first_brokers, offset).await;
    assert_eq!(consumed, BODY);

    let mut connection = PgConnection::connect(&engines.database_url().unwrap())
        .await
        .unwrap();
    sqlx::query("CREATE TABLE part (seq bigint PRIMARY KEY, body bytea NOT NULL)")
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::query("INSERT INTO part VALUES (1, $1)")
        .bind(&consumed)
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let read = row(&engines).await;
    assert_eq!(read, BODY);

    let address = engines.archive().unwrap();
    common::s3(&address)
        .put_object()
        .bucket(&address.bucket)
        .key(KEY)
        .body(ByteStream::from(read))
        .send()
        .await
        .unwrap();
    assert_eq!(object(&engines).await, BODY);

    engines.stop().await.unwrap();
    let engines = common::start(&folder.path().join("data")).await;
    let brokers = engines.brokers().unwrap();
    assert_eq!(common::consume(&brokers, offset).await, BODY);
    assert_eq!(row(&engines).await, BODY);
    assert_eq!(object(&engines).await, BODY);
    assert_eq!(common::produce(&brokers, b"more").await, offset + 1);
    engines.stop().await.unwrap();
}
