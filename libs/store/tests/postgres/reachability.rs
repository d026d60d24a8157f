use std::net::TcpListener;
use std::time::{Duration, Instant};

use wakelog_store::{Effect, Error, Options, Store};

use crate::support::Database;
use crate::support::rows::{Owner, TOPIC};

/// Connects where nobody answers as a database would; the error, and that it came in time.
async fn refused(url: String) -> Error {
    let options = Options {
        acquire_timeout: Duration::from_millis(500),
        ..Options::new(url)
    };
    let started = Instant::now();
    let error = Store::connect(options).await.unwrap_err();
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(error.effect(), Effect::CertainlyNot, "{error}");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    error
}

#[tokio::test]
async fn a_refused_connection_is_unreachable_within_the_bound() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let error = refused(format!("postgres://user:hunter2@127.0.0.1:{port}/nobody")).await;
    assert!(
        matches!(&error, Error::Unreachable { reason } if reason.contains("refused")),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_says_nothing_is_unreachable_within_the_bound() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let error = refused(format!("postgres://user:hunter2@127.0.0.1:{port}/nobody")).await;
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_a_refused_connection() {
    let url = format!("{}_missing", Database::empty().await.url);
    let error = refused(url).await;
    assert!(
        matches!(&error, Error::ConnectionRefused { reason } if reason.ends_with("does not exist")),
        "{error}"
    );
}

#[tokio::test]
async fn options_that_make_no_sense_are_refused() {
    for url in [
        "",
        "not a url",
        "postgres://user:hunter2@host:notaport/x",
        "mysql://user:hunter2@127.0.0.1/x",
    ] {
        let error = refused(url.to_owned()).await;
        assert!(matches!(error, Error::Configuration { .. }), "{error}");
    }
    let none = Options {
        max_connections: 0,
        ..Options::new("postgres://127.0.0.1/x")
    };
    assert!(matches!(
        Store::connect(none).await,
        Err(Error::Configuration { .. })
    ));
}

#[tokio::test]
async fn the_url_is_in_no_debug_output() {
    let database = Database::empty().await;
    let url = database.url.replace("postgres@", "postgres:hunter2@");
    let store = Store::connect(Options::new(url)).await.unwrap();
    assert!(!format!("{store:?} {:?}", Options::new("postgres://a:hunter2@b/c")).contains("hunter2"));
}

#[tokio::test]
async fn a_pool_that_is_used_up_is_a_typed_error_in_time() {
    let database = Database::empty_single().await;
    database.store().await.close().await;
    let options = Options {
        acquire_timeout: Duration::from_millis(200),
        ..database.options()
    };
    let store = Store::connect(options).await.unwrap();
    let owner = Owner::claim(&store).await;
    let batch = store.begin_batch(TOPIC, 0, owner.epoch, 0).await.unwrap();
    let error = store.progress(TOPIC, 0).await.unwrap_err();
    assert!(matches!(error, Error::PoolTimedOut), "{error}");
    assert_eq!(error.effect(), Effect::CertainlyNot);
    batch.rollback().await.unwrap();
    store.progress(TOPIC, 0).await.unwrap();
    store.close().await;
    assert!(matches!(store.progress(TOPIC, 0).await, Err(Error::Closed)));
}

#[tokio::test]
async fn a_connection_that_died_while_idle_is_replaced() {
    let database = Database::empty_single().await;
    let store = database.store().await;
    database
        .execute(
            "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
    assert_eq!(store.progress(TOPIC, 0).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_that_migrated_has_the_bounds_of_the_options_again() {
    let database = Database::empty_single().await;
    let bound = Duration::from_millis(200);
    let options = Options {
        statement_timeout: bound,
        lock_timeout: Duration::from_secs(20),
        ..database.options()
    };
    let store = Store::connect(options).await.unwrap();
    store.migrate().await.unwrap();
    store.claim_partition(TOPIC, 0).await.unwrap();
    let mut holder = database.raw().await;
    sqlx::raw_sql("BEGIN; SELECT * FROM stream_progress FOR UPDATE")
        .execute(&mut holder)
        .await
        .unwrap();
    let started = Instant::now();
    let error = store.begin_batch(TOPIC, 0, 1, 0).await.unwrap_err();
    assert!(
        started.elapsed() >= bound && started.elapsed() < bound * 10,
        "{:?}",
        started.elapsed()
    );
    assert!(matches!(error, Error::BatchAborted(_)), "{error}");
    let error = store.claim_partition(TOPIC, 0).await.unwrap_err();
    assert_eq!(error.effect(), Effect::CertainlyNot, "{error}");

    let named = "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'wakelog'";
    assert_eq!(database.number(named).await, 1);
}

#[tokio::test]
async fn the_server_is_recent_enough() {
    let store = Database::empty().await.connect().await;
    let major: u32 = store
        .server_version()
        .await
        .unwrap()
        .split('.')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(major >= 15);
}
