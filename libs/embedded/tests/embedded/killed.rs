//! What the engines acknowledged is there after the process was killed.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use aws_sdk_s3::primitives::ByteStream;
use sqlx::{Connection, Executor, PgConnection};

use crate::common;

const FOLDER: &str = "WAKELOG_TEST_KILLED_FOLDER";

/// The life of the child: acknowledged writes to all three, then waiting for its end with a transaction open.
async fn live(folder: PathBuf) {
    let engines = common::start(&folder).await;
    let brokers = engines.brokers().unwrap();
    common::create_topic(&brokers).await;
    common::produce(&brokers, b"acknowledged").await;
    let address = engines.archive().unwrap();
    let put = common::s3(&address).put_object().bucket(&address.bucket).key("k");
    put.body(ByteStream::from_static(b"object")).send().await.unwrap();
    let mut connection = PgConnection::connect(&engines.database_url().unwrap())
        .await
        .unwrap();
    connection.execute("CREATE TABLE t (a bigint)").await.unwrap();
    connection.execute("INSERT INTO t VALUES (1)").await.unwrap();
    connection
        .execute("BEGIN; INSERT INTO t VALUES (2)")
        .await
        .unwrap();
    std::fs::write(folder.join("written"), b"").unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_a_kill() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return live(PathBuf::from(folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::acknowledged_writes_survive_a_kill"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !folder.path().join("written").exists() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "the child has not written"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let engines = common::start(folder.path()).await;
    assert_eq!(
        common::consume(&engines.brokers().unwrap(), 0).await,
        b"acknowledged"
    );
    let address = engines.archive().unwrap();
    let got = common::s3(&address)
        .get_object()
        .bucket(&address.bucket)
        .key("k")
        .send()
        .await
        .unwrap();
    assert_eq!(got.body.collect().await.unwrap().to_vec(), b"object");
    let mut connection = PgConnection::connect(&engines.database_url().unwrap())
        .await
        .unwrap();
    let rows: Vec<i64> = sqlx::query_scalar("SELECT a FROM t")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(rows, [1]);
    connection.close().await.unwrap();
    engines.stop().await.unwrap();
}
