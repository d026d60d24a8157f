//! What whoever sets it up is told.

use std::time::Duration;

use hyper::Method;
use wakelog_archive::{BucketState, ObjectStore, Options};

use crate::support::{Fault, Server};

fn store(options: Options) -> ObjectStore {
    ObjectStore::new(options).unwrap()
}

#[tokio::test]
async fn a_bucket_that_can_be_used_is_ready() {
    let server = Server::start().await;
    let store = server.store();
    assert_eq!(store.check().await.unwrap(), BucketState::Ready);
    assert_eq!(store.requests(), 1);
    assert_eq!(store.check_write().await.unwrap(), BucketState::Ready);
    let left = store.list_page("doctor/", None).await.unwrap().objects;
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn what_is_wrong_is_told_apart() {
    let server = Server::start().await;
    let absent = store(Options {
        bucket: "another".to_owned(),
        ..server.options()
    });
    assert_eq!(absent.check().await.unwrap(), BucketState::Absent);
    // This server makes the bucket with its first object.
    server.fail(Method::PUT, "trial", Fault::Answer(404, "NoSuchBucket"), 1);
    assert_eq!(absent.check_write().await.unwrap(), BucketState::Absent);
    let denied = store(Options {
        secret_key: Some("wrong".to_owned()),
        ..server.options()
    });
    assert!(matches!(
        denied.check().await.unwrap(),
        BucketState::Denied { .. }
    ));
    let unsigned = store(Options {
        access_key: None,
        secret_key: None,
        ..server.options()
    });
    assert!(matches!(
        unsigned.check().await.unwrap(),
        BucketState::Denied { .. }
    ));
    let impatient = store(Options {
        attempt_timeout: Duration::from_millis(100),
        ..server.options()
    });
    server.fail(Method::HEAD, "", Fault::Stall, 1);
    assert!(matches!(
        impatient.check().await.unwrap(),
        BucketState::Unreachable { .. }
    ));
    assert_eq!(impatient.requests(), 1);
    server.fail(Method::PUT, "trial", Fault::Answer(405, "MethodNotAllowed"), 1);
    assert!(matches!(
        server.store().check_write().await.unwrap(),
        BucketState::ReadOnly { .. }
    ));
}

/// Two services that start at the same time look at one bucket and do not get into each other's way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looks_at_the_same_time_do_not_disturb_each_other() {
    let server = Server::start().await;
    let looks = (0..8).map(|_| {
        let store = server.store();
        tokio::spawn(async move {
            for _ in 0..5 {
                assert_eq!(store.check_write().await.unwrap(), BucketState::Ready);
            }
        })
    });
    for look in looks.collect::<Vec<_>>() {
        look.await.unwrap();
    }
}
