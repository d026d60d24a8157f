//! put-before-prune: an upload that is reported as done is in the store, with exactly these bytes; and every failure says
//! whether it may be there all the same.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use sha2::{Digest as _, Sha256};
use wakelog_archive::{Effect, Error, Failure, ObjectStore, Options, Put, RequestError, Spool, Verified};

use crate::support::{ATTEMPTS, Fault, Server, noise};

const KEY: &str = "sessions/a/object";
const ALWAYS: usize = usize::MAX;

async fn put(store: &ObjectStore, bytes: &[u8]) -> Result<Put, Error> {
    store.put_bytes(KEY, Bytes::copy_from_slice(bytes)).await
}

fn request_error(result: Result<Put, Error>) -> Box<RequestError> {
    match result {
        Err(Error::Request(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn stored(server: &Server) -> Option<Vec<u8>> {
    std::fs::read(server.file(KEY)).ok()
}

#[tokio::test]
async fn put_before_prune_the_store_says_what_it_holds() {
    let server = Server::start().await;
    let store = server.store();
    assert_eq!(store.requests(), 0);
    let body = noise(100_000, 1);
    let expected = Put {
        verified: Verified::Checksum,
        answer_lost: false,
    };
    assert_eq!(put(&store, &body).await.unwrap(), expected);
    assert_eq!(stored(&server), Some(body.clone()));
    assert_eq!(store.requests(), 2);
    // A repeat is harmless.
    assert_eq!(put(&store.clone(), &body).await.unwrap(), expected);
    assert_eq!(store.requests(), 4);
}

#[tokio::test]
async fn put_before_prune_a_store_without_checksums_is_read_back() {
    let server = Server::start().await;
    let store = server.store();
    let no_checksum = Fault::SetHeader("x-amz-checksum-sha256", String::new());
    server.fail(Method::HEAD, "object", no_checksum, ALWAYS);
    let done = put(&store, &noise(9_000_000, 1)).await.unwrap();
    assert_eq!(done.verified, Verified::ReadBack);
    assert_eq!(server.seen("GET"), 3);

    server.fail(Method::GET, "object", Fault::FlipBit, 1);
    let error = request_error(put(&store, b"these bytes").await);
    assert_eq!(error.failure, Failure::Corrupt, "{error}");
    assert_eq!(error.effect, Effect::Unknown);
    assert_eq!(error.key, KEY);
}

#[tokio::test]
async fn put_before_prune_a_checksum_of_other_bytes_is_not_believed_but_looked_into() {
    let server = Server::start().await;
    let store = server.store();
    let stale = Fault::SetHeader(
        "x-amz-checksum-sha256",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_owned(),
    );
    server.fail(Method::HEAD, "object", stale, ALWAYS);
    let done = put(&store, b"some bytes").await.unwrap();
    assert_eq!(done.verified, Verified::ReadBack);
    server.fail(Method::GET, "object", Fault::FlipBit, ALWAYS);
    let error = request_error(put(&store, b"some bytes").await);
    assert_eq!(error.failure, Failure::Corrupt, "{error}");
}

#[tokio::test]
async fn put_before_prune_another_size_is_noticed() {
    let server = Server::start().await;
    let store = server.store();
    let shorter = Fault::SetHeader("content-length", "9".to_owned());
    server.fail(Method::HEAD, "object", shorter, ALWAYS);
    let error = request_error(put(&store, b"ten bytes.").await);
    assert_eq!(error.failure, Failure::Corrupt, "{error}");
    assert_eq!(error.effect, Effect::Unknown);
}

#[tokio::test]
async fn an_object_that_is_not_there_or_another_one_is_not_verified() {
    let server = Server::start().await;
    let store = server.store();
    let digest = Sha256::digest(b"one").into();
    let absent = store.verify(KEY, 3, digest).await.unwrap_err();
    assert_eq!(absent.failure(), Some(Failure::NotFound), "{absent}");
    put(&store, b"one").await.unwrap();
    assert_eq!(store.verify(KEY, 3, digest).await.unwrap(), Verified::Checksum);
    let other_size = store.verify(KEY, 4, digest).await.unwrap_err();
    assert_eq!(other_size.failure(), Some(Failure::Corrupt));
    let other = store.verify(KEY, 3, [0; 32]).await.unwrap_err();
    assert_eq!(other.failure(), Some(Failure::Corrupt));
    // A check has no effect, whatever it finds.
    assert_eq!(other.effect(), Effect::CertainlyNot);
}

#[tokio::test]
async fn bytes_that_are_not_those_of_the_digest_are_never_reported_as_stored() {
    let server = Server::start().await;
    let store = server.store();
    let object = Spool::from(Bytes::from_static(b"these bytes"));
    let error = request_error(store.put(KEY, &object, [7; 32]).await);
    assert_eq!(error.failure, Failure::Corrupt, "{error}");
    assert_eq!(error.attempts, ATTEMPTS);
    // This server refuses the checksum, but keeps the bytes.
    assert_eq!(error.effect, Effect::Unknown);
}

#[tokio::test]
async fn an_upload_whose_answer_is_lost_is_found() {
    for lost in [Fault::LoseAnswer, Fault::AnswerAfter(500, "InternalError")] {
        let server = Server::start().await;
        let store = server.store();
        server.fail(Method::PUT, "object", lost.clone(), ATTEMPTS as usize);
        let done = put(&store, b"bytes").await.unwrap();
        let expected = Put {
            verified: Verified::Checksum,
            answer_lost: true,
        };
        assert_eq!(done, expected, "{lost:?}");
        assert_eq!(server.seen("PUT"), ATTEMPTS as usize);
        // One lost answer is no more than a retry.
        server.fail(Method::PUT, "object", lost, 1);
        assert!(!put(&store, b"bytes").await.unwrap().answer_lost);
    }
}

#[tokio::test]
async fn an_upload_that_may_have_happened_says_so() {
    let server = Server::start().await;
    let store = server.store();
    server.fail(Method::PUT, "object", Fault::LoseRequest, ALWAYS);
    let error = request_error(put(&store, b"bytes").await);
    assert_eq!(error.failure, Failure::Unavailable, "{error}");
    assert_eq!(error.effect, Effect::Unknown);
    assert_eq!(error.attempts, ATTEMPTS);
    assert_eq!(stored(&server), None);

    // Also when the last attempt was refused for certain.
    server.heal();
    server.fail(Method::PUT, "object", Fault::LoseRequest, 1);
    server.fail(Method::PUT, "object", Fault::Answer(403, "AccessDenied"), 1);
    let error = request_error(put(&store, b"bytes").await);
    assert_eq!(error.failure, Failure::Denied, "{error}");
    assert_eq!(error.effect, Effect::Unknown);

    // And when it can't be found out.
    server.heal();
    server.fail(Method::PUT, "object", Fault::LoseAnswer, ALWAYS);
    server.fail(Method::HEAD, "object", Fault::LoseRequest, ALWAYS);
    let error = request_error(put(&store, b"bytes").await);
    assert_eq!(
        (error.failure, error.effect),
        (Failure::Unavailable, Effect::Unknown)
    );
    server.heal();
    server.fail(Method::HEAD, "object", Fault::LoseRequest, ALWAYS);
    let error = request_error(put(&store, b"bytes").await);
    assert_eq!(
        (error.failure, error.effect),
        (Failure::Unavailable, Effect::Unknown)
    );
}

#[tokio::test]
async fn what_a_retry_helps_is_retried_and_ends() {
    let table = [
        (503, "SlowDown", Failure::Throttled, Effect::CertainlyNot),
        (500, "InternalError", Failure::Unavailable, Effect::Unknown),
        (409, "OperationAborted", Failure::Conflict, Effect::CertainlyNot),
    ];
    for (status, code, failure, effect) in table {
        let server = Server::start().await;
        let store = server.store();
        server.fail(Method::PUT, "object", Fault::Answer(status, code), 2);
        put(&store, b"bytes").await.unwrap();
        assert_eq!(server.seen("PUT"), 3, "{code}");

        server.fail(Method::PUT, "object", Fault::Answer(status, code), ALWAYS);
        std::fs::remove_file(server.file(KEY)).unwrap();
        let error = request_error(put(&store, b"bytes").await);
        assert_eq!((error.failure, error.effect), (failure, effect), "{error}");
        assert_eq!(error.attempts, ATTEMPTS, "{code}");
        assert!(Error::Request(error).is_retryable());
    }
}

#[tokio::test]
async fn what_a_retry_does_not_help_is_tried_once() {
    let table = [
        (403, "AccessDenied", Failure::Denied),
        (405, "MethodNotAllowed", Failure::ReadOnly),
        (412, "PreconditionFailed", Failure::PreconditionFailed),
        (404, "NoSuchBucket", Failure::BucketNotFound),
        (400, "InvalidArgument", Failure::Rejected { status: 400 }),
    ];
    for (status, code, failure) in table {
        let server = Server::start().await;
        let store = server.store();
        server.fail(Method::PUT, "object", Fault::Answer(status, code), ALWAYS);
        let error = request_error(put(&store, b"bytes").await);
        assert_eq!(
            (error.failure, error.effect, error.attempts),
            (failure, Effect::CertainlyNot, 1),
            "{error}"
        );
        assert!(error.reason.contains(code), "{error}");
        assert_eq!(store.requests(), 1, "{code}");
        assert!(!Error::Request(error).is_retryable());
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_given_up() {
    let server = Server::start().await;
    let timeouts = [
        Options {
            attempt_timeout: Duration::from_millis(100),
            ..server.options()
        },
        Options {
            read_timeout: Duration::from_millis(100),
            ..server.options()
        },
    ];
    for options in timeouts {
        let store = ObjectStore::new(options).unwrap();
        server.fail(Method::PUT, "object", Fault::Stall, ALWAYS);
        let error = request_error(put(&store, b"bytes").await);
        assert_eq!(
            (error.failure, error.effect),
            (Failure::Unavailable, Effect::Unknown)
        );
        assert_eq!(error.attempts, ATTEMPTS);
        server.heal();
        put(&store, b"bytes").await.unwrap();
        std::fs::remove_file(server.file(KEY)).unwrap();
    }
}

#[tokio::test]
async fn where_nobody_listens_nothing_has_happened() {
    let server = Server::start().await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let store = ObjectStore::new(Options {
        endpoint: Some(format!("http://{address}")),
        ..server.options()
    })
    .unwrap();
    let error = request_error(put(&store, b"bytes").await);
    assert_eq!(
        (error.failure, error.effect),
        (Failure::Unavailable, Effect::CertainlyNot),
        "{error}"
    );
}

#[tokio::test]
async fn requests_wait_for_a_slot() {
    let server = Server::start().await;
    let store = ObjectStore::new(Options {
        concurrency: 1,
        attempt_timeout: Duration::from_secs(20),
        ..server.options()
    })
    .unwrap();
    // More at a time than there are slots: all of them get through.
    let puts = (0..8_u8).map(|number| {
        let store = store.clone();
        async move {
            let key = format!("object-{number}");
            store.put_bytes(&key, Bytes::from(vec![number])).await
        }
    });
    for done in futures::future::join_all(puts).await {
        done.unwrap();
    }
}

#[tokio::test]
async fn errors_and_handles_show_no_secret() {
    let server = Server::start().await;
    let store = ObjectStore::new(Options {
        secret_key: Some("wrong-secret".to_owned()),
        ..server.options()
    })
    .unwrap();
    let error = request_error(put(&store, b"payload-bytes").await);
    assert_eq!(error.failure, Failure::Denied);
    let shown = format!("{error} {error:?} {store:?}");
    assert!(
        !shown.contains("wrong-secret") && !shown.contains("payload-bytes"),
        "{shown}"
    );
}
