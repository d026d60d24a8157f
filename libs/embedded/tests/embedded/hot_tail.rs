//! The embedded hot tail: one connection at a time, clients that go away, and the SQL that the store needs.

use std::time::{Duration, Instant};

use sqlx::{Connection, Executor, PgConnection, Row};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wakelog_embedded::Engines;

use crate::common;

async fn start(folder: &std::path::Path) -> Engines {
    Engines::start(common::only_hot_tail(folder)).await.unwrap()
}

async fn connect(engines: &Engines) -> PgConnection {
    PgConnection::connect(&engines.database_url().unwrap())
        .await
        .unwrap()
}

fn address(engines: &Engines) -> String {
    let url = engines.database_url().unwrap();
    url.split('@')
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned()
}

fn startup(database: &str) -> Vec<u8> {
    let body = format!("user\0postgres\0database\0{database}\0\0");
    let mut packet = u32::try_from(body.len() + 8).unwrap().to_be_bytes().to_vec();
    packet.extend_from_slice(b"\0\x03\0\0");
    packet.extend_from_slice(body.as_bytes());
    packet
}

/// A raw client that has got as far as `ReadyForQuery`.
async fn raw_client(engines: &Engines) -> TcpStream {
    let mut client = TcpStream::connect(address(engines)).await.unwrap();
    client.write_all(&startup("postgres")).await.unwrap();
    read_until_ready(&mut client).await;
    client
}

async fn read_until_ready(client: &mut TcpStream) {
    loop {
        let kind = client.read_u8().await.unwrap();
        let length = client.read_u32().await.unwrap();
        let mut body = vec![0; length as usize - 4];
        client.read_exact(&mut body).await.unwrap();
        if kind == b'Z' {
            return;
        }
    }
}

fn query(sql: &str) -> Vec<u8> {
    let mut message = vec![b'Q'];
    message.extend_from_slice(&u32::try_from(sql.len() + 5).unwrap().to_be_bytes());
    message.extend_from_slice(sql.as_bytes());
    message.push(0);
    message
}

async fn rows(engines: &Engines) -> i64 {
    let mut connection = connect(engines).await;
    let rows = sqlx::query_scalar("SELECT count(*) FROM t")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_connection_waits_for_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let engines = start(folder.path()).await;
    let first = connect(&engines).await;
    let url = engines.database_url().unwrap();
    let second = tokio::spawn(async move { PgConnection::connect(&url).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!second.is_finished());
    first.close().await.unwrap();
    second.await.unwrap().unwrap().close().await.unwrap();
    engines.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_turn_does_not_come_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let engines = start(folder.path()).await;
    let first = connect(&engines).await;
    let started = Instant::now();
    let refused = PgConnection::connect(&engines.database_url().unwrap())
        .await
        .unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(25));
    let code = refused
        .as_database_error()
        .and_then(|error| error.code())
        .map(|code| code.into_owned());
    assert_eq!(code.as_deref(), Some("53300"), "{refused}");
    first.close().await.unwrap();
    engines.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_and_cut_messages_at_any_point_leave_it_serving_and_roll_back() {
    let folder = tempfile::tempdir().unwrap();
    let engines = start(folder.path()).await;
    let mut connection = connect(&engines).await;
    connection
        .execute("CREATE TABLE t (a bigint PRIMARY KEY)")
        .await
        .unwrap();
    connection.close().await.unwrap();

    let in_transaction = query("BEGIN; INSERT INTO t VALUES (1)");
    // Parse of a statement that does not exist, Bind, Execute, and no Sync: the backend skips all until a Sync.
    let without_sync = b"P\0\0\0\x0d\0nope\0\0\0\0B\0\0\0\x0c\0\0\0\0\0\0\0\0E\0\0\0\x09\0\0\0\0\0".to_vec();
    let half = query("SELECT pg_sleep(0)")[..7].to_vec();
    let large_answer = query("SELECT repeat('x', 1000) FROM generate_series(1, 20000)");
    for (name, bytes) in [
        ("in a transaction", &in_transaction),
        ("without sync", &without_sync),
        ("half a message", &half),
        ("large answer", &large_answer),
    ] {
        for reset in [true, false] {
            let mut client = raw_client(&engines).await;
            client.write_all(bytes).await.unwrap();
            if name == "in a transaction" {
                read_until_ready(&mut client).await;
            }
            if reset {
                client.set_zero_linger().unwrap();
            }
            drop(client);
            let left = tokio::time::timeout(Duration::from_secs(20), rows(&engines)).await;
            assert_eq!(left.expect("an answer in time"), 0, "{name}, reset: {reset}");
        }
    }
    for reset in [true, false] {
        for bytes in [
            &b""[..],
            b"\0\0",
            &startup("postgres")[..15],
            &startup("postgres"),
        ] {
            let mut client = TcpStream::connect(address(&engines)).await.unwrap();
            client.write_all(bytes).await.unwrap();
            if reset {
                client.set_zero_linger().unwrap();
            }
        }
    }
    assert_eq!(rows(&engines).await, 0);
    assert!(
        tokio::time::timeout(Duration::from_millis(200), engines.failed())
            .await
            .is_err()
    );
    engines.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_postgres_is_cut_off_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let engines = start(folder.path()).await;
    let mut connection = connect(&engines).await;
    connection.execute("CREATE TABLE t (a bigint)").await.unwrap();
    connection.close().await.unwrap();
    let cancel = b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x01".to_vec();
    for bytes in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        startup(""),
        cancel,
        startup("no such database"),
    ] {
        let mut client = TcpStream::connect(address(&engines)).await.unwrap();
        client.write_all(&bytes).await.unwrap();
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(10), client.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{bytes:?}");
        assert_eq!(rows(&engines).await, 0);
    }
    for garbage in [&b"\0\0\0\0\0\0\0\0\0"[..], b"Q\xff\xff\xff\xff"] {
        let mut client = raw_client(&engines).await;
        client.write_all(garbage).await.unwrap();
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(10), client.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{garbage:?}");
        assert_eq!(rows(&engines).await, 0);
    }
    assert!(
        tokio::time::timeout(Duration::from_millis(200), engines.failed())
            .await
            .is_err()
    );
    engines.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_is_bounded_with_a_client_that_stays() {
    let folder = tempfile::tempdir().unwrap();
    let engines = start(folder.path()).await;
    let mut idle = connect(&engines).await;
    idle.execute("CREATE TABLE t (a bigint)").await.unwrap();
    idle.execute("BEGIN; INSERT INTO t VALUES (1)").await.unwrap();
    let started = Instant::now();
    engines.stop().await.unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    let engines = start(folder.path()).await;
    assert_eq!(rows(&engines).await, 0);
    engines.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_without_a_stop_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let engines = start(folder.path()).await;
    let _idle = connect(&engines).await;
    let started = Instant::now();
    drop(engines);
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn any_folder_name_works() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["with space", "grün-日本", "a#b?c%41&d", "quote'\"{}"] {
        let engines = start(&folder.path().join(name)).await;
        let mut connection = connect(&engines).await;
        connection.execute("CREATE TABLE t (a bigint)").await.unwrap();
        connection.close().await.unwrap();
        engines.stop().await.unwrap();
        let engines = start(&folder.path().join(name)).await;
        assert_eq!(rows(&engines).await, 0);
        engines.stop().await.unwrap();
    }
}

/// What the store and its migrations rely on.
#[tokio::test(flavor = "multi_thread")]
async fn the_sql_that_the_store_needs_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let engines = start(folder.path()).await;
    let mut connection = connect(&engines).await;
    let mut missing = Vec::new();
    for sql in [
        "SET lock_timeout = '2s'",
        "SET idle_in_transaction_session_timeout = '5s'",
        "SET statement_timeout = '30s'",
        "SELECT pg_advisory_lock(42)",
        "SELECT pg_advisory_unlock(42)",
        "SELECT pg_advisory_xact_lock(42)",
        "CREATE TABLE part (id uuid, seq bigint, key bytea, body bytea, labels jsonb, at timestamptz DEFAULT now(), PRIMARY KEY (id, seq))",
        "ALTER TABLE part ALTER COLUMN body SET STORAGE EXTERNAL",
        "CREATE UNIQUE INDEX part_key ON part (key)",
        "CREATE INDEX part_labels ON part USING gin (labels jsonb_path_ops)",
        "CREATE INDEX part_open ON part (seq) WHERE seq > 5",
        "COMMENT ON TABLE part IS 'parts'",
        "INSERT INTO part (id, seq, key, body, labels) SELECT * FROM UNNEST(ARRAY[gen_random_uuid()], ARRAY[1::bigint], ARRAY['\\x00ff00'::bytea], ARRAY['\\x00'::bytea], ARRAY['{\"a\":\"b\"}'::jsonb])",
        "INSERT INTO part (id, seq, key) SELECT id, seq, key FROM part ON CONFLICT DO NOTHING",
        "INSERT INTO part (id, seq) SELECT id, seq FROM part ON CONFLICT (id, seq) DO UPDATE SET body = EXCLUDED.body",
        "SELECT extract(epoch FROM now() - at) FROM part",
        "SELECT 1 FROM part WHERE labels @> '{\"a\":\"b\"}'",
        "SELECT 1 FROM part FOR UPDATE",
        "SELECT 1 FROM part FOR UPDATE SKIP LOCKED",
        "SELECT 1 FROM part FOR UPDATE NOWAIT",
        "SELECT pg_backend_pid(), pg_blocking_pids(pg_backend_pid())",
        "SELECT pid FROM pg_stat_activity",
        "SELECT pg_terminate_backend(0)",
        "SELECT sha256('x'::bytea), octet_length(body) FROM part",
        "DO $$ BEGIN PERFORM 1; END $$",
        "CREATE TYPE role AS ENUM ('a')",
        "BEGIN; SAVEPOINT s; ROLLBACK TO s; COMMIT",
    ] {
        if let Err(error) = connection.execute(sql).await {
            missing.push(format!("{sql}: {error}"));
        }
    }
    assert_eq!(missing, Vec::<String>::new());
    let row = connection.fetch_one("SELECT key FROM part").await.unwrap();
    assert_eq!(row.get::<Vec<u8>, _>(0), [0, 255, 0]);
    connection.close().await.unwrap();
    engines.stop().await.unwrap();
}

/// There are no timers inside PGlite: who needs a bound has to keep it on the client's side.
#[tokio::test(flavor = "multi_thread")]
async fn timeouts_are_taken_and_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let engines = start(folder.path()).await;
    let mut connection = connect(&engines).await;
    connection
        .execute("SET statement_timeout = '50ms'")
        .await
        .unwrap();
    connection
        .execute("SET idle_in_transaction_session_timeout = '50ms'")
        .await
        .unwrap();
    connection.execute("SELECT pg_sleep(0.5)").await.unwrap();
    connection.execute("BEGIN").await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    connection.execute("COMMIT").await.unwrap();
    connection.close().await.unwrap();
    engines.stop().await.unwrap();
}
