//! Lists are complete and end; removals remove what they should and nothing else.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::TryStreamExt as _;
use hyper::Method;
use wakelog_archive::{Error, Failure, ObjectStore, Options};

use crate::support::{ATTEMPTS, Fault, Server};

/// A file of the store's folder is an object, and faster to make.
fn make(server: &Server, key: &str) {
    let file = server.file(key);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, key).unwrap();
}

async fn keys(store: &ObjectStore, prefix: &str, start_after: Option<&str>) -> Vec<String> {
    let listed = store.list(prefix, start_after.map(str::to_owned));
    listed.map_ok(|object| object.key).try_collect().await.unwrap()
}

#[tokio::test]
async fn a_list_goes_over_all_pages() {
    let server = Server::start().await;
    let store = server.store();
    let names: BTreeSet<String> = (0..2_100).map(|number| format!("sessions/a/{number}")).collect();
    for name in &names {
        make(&server, name);
    }
    make(&server, "sessions/b/1");
    let expected: Vec<String> = names.into_iter().collect();
    assert_eq!(keys(&store, "sessions/a/", None).await, expected);
    assert_eq!(store.requests(), 3);
    let all = store.list_all("sessions/a/").await.unwrap();
    assert_eq!(all.len(), 2_100);
    assert_eq!(store.list_all("sessions/c/").await.unwrap(), []);
    assert_eq!(
        keys(&store, "sessions/a/", Some(&expected[1_500])).await,
        expected[1_501..]
    );
    assert_eq!(keys(&store, "sessions/c/", None).await, Vec::<String>::new());
    let page = store.list_page("sessions/b/", None).await.unwrap();
    assert_eq!(page.objects.len(), 1);
    assert_eq!(page.objects[0].bytes, "sessions/b/1".len() as u64);
    assert!(page.objects[0].last_modified.is_some());

    assert_eq!(store.delete_prefix("sessions/a/").await.unwrap(), 2_100);
    assert_eq!(keys(&store, "sessions/", None).await, ["sessions/b/1"]);
}

#[tokio::test]
async fn a_removal_takes_nothing_of_another_session() {
    let server = Server::start().await;
    let store = server.store();
    for key in ["sessions/1/a", "sessions/12/a", "erased/1"] {
        make(&server, key);
    }
    for prefix in ["", "/", "sessions/1", "sessions"] {
        assert!(matches!(store.delete_prefix(prefix).await, Err(Error::Bug(_))));
    }
    assert_eq!(store.requests(), 0);
    assert_eq!(store.delete_prefix("sessions/1/").await.unwrap(), 1);
    assert_eq!(store.delete_prefix("sessions/1/").await.unwrap(), 0);
    assert_eq!(keys(&store, "", None).await, ["erased/1", "sessions/12/a"]);
    store.delete("erased/1").await.unwrap();
    store.delete("erased/1").await.unwrap();
    assert_eq!(keys(&store, "", None).await, ["sessions/12/a"]);
}

#[tokio::test]
async fn a_removal_that_fails_can_be_repeated() {
    let server = Server::start().await;
    let store = server.store();
    for key in ["sessions/1/a", "sessions/1/b", "sessions/1/c"] {
        make(&server, key);
    }
    server.fail(Method::DELETE, "1/b", Fault::Answer(403, "AccessDenied"), 1);
    let error = store.delete_prefix("sessions/1/").await.unwrap_err();
    assert_eq!(error.failure(), Some(Failure::Denied));
    server.fail(Method::DELETE, "1/b", Fault::LoseAnswer, 1);
    store.delete_prefix("sessions/1/").await.unwrap();
    assert!(keys(&store, "sessions/", None).await.is_empty());
    server.fail(Method::DELETE, "none", Fault::Answer(404, "NoSuchKey"), 1);
    store.delete("none").await.unwrap();
}

#[tokio::test]
async fn a_prefix_keeps_stores_in_one_bucket_apart() {
    let server = Server::start().await;
    let within = |prefix: &str| {
        ObjectStore::new(Options {
            prefix: Some(prefix.to_owned()),
            ..server.options()
        })
        .unwrap()
    };
    let (one, two) = (within("team/one"), within("team/two"));
    one.put_bytes("erased/x", Bytes::from_static(b"1")).await.unwrap();
    two.put_bytes("erased/x", Bytes::from_static(b"22"))
        .await
        .unwrap();
    two.put_bytes("erased/y", Bytes::from_static(b"22"))
        .await
        .unwrap();
    assert!(server.file("team/one/erased/x").is_file());
    assert_eq!(keys(&one, "", None).await, ["erased/x"]);
    assert_eq!(keys(&two, "erased/", Some("erased/x")).await, ["erased/y"]);
    assert_eq!(two.delete_prefix("erased/").await.unwrap(), 2);
    assert_eq!(one.get_bytes("erased/x", 10).await.unwrap(), &b"1"[..]);
}

#[tokio::test]
async fn a_list_that_goes_in_circles_is_an_error() {
    let bodies = [
        // Not sorted.
        "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>a/2</Key><Size>1</Size></Contents>\
         <Contents><Key>a/1</Key><Size>1</Size></Contents></ListBucketResult>",
        // Of another prefix.
        "<ListBucketResult><Contents><Key>b/2</Key><Size>1</Size></Contents></ListBucketResult>",
        // No size.
        "<ListBucketResult><Contents><Key>a/2</Key></Contents></ListBucketResult>",
        // More, and nothing.
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
    ];
    let server = Server::start().await;
    let store = server.store();
    for body in bodies {
        server.fail(Method::GET, "list-type", Fault::Body(body.into()), 1);
        let error = store.list_page("a/", None).await.unwrap_err();
        assert!(
            matches!(error.failure(), Some(Failure::Rejected { .. })),
            "{body}: {error}"
        );
    }
    // A store that ignores where to start.
    let same = "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>a/2</Key><Size>1</Size></Contents></ListBucketResult>";
    server.fail(Method::GET, "list-type", Fault::Body(same.into()), 100);
    let listed: Result<Vec<_>, _> = store.list("a/", None).try_collect().await;
    let error = listed.unwrap_err();
    assert!(
        matches!(error.failure(), Some(Failure::Rejected { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn lists_are_retried_and_end() {
    let server = Server::start().await;
    let store = server.store();
    make(&server, "a/1");
    server.fail(Method::GET, "list-type", Fault::Answer(503, "SlowDown"), 2);
    assert_eq!(keys(&store, "a/", None).await, ["a/1"]);
    server.fail(
        Method::GET,
        "list-type",
        Fault::Answer(503, "SlowDown"),
        usize::MAX,
    );
    let Err(Error::Request(error)) = store.list_page("a/", None).await else {
        panic!("no error");
    };
    assert_eq!((error.failure, error.attempts), (Failure::Throttled, ATTEMPTS));
}
