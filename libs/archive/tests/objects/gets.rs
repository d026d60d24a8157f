//! Reads give all of the bytes or an error, never fewer.

use bytes::Bytes;
use futures::TryStreamExt as _;
use hyper::Method;
use wakelog_archive::{Effect, Error, Failure, MOST_READ_BYTES, ObjectStore};

use crate::support::{ATTEMPTS, Fault, Server, noise};

const KEY: &str = "sessions/a/object";
const ALWAYS: usize = usize::MAX;

async fn with_object(bytes: &[u8]) -> (Server, ObjectStore) {
    let server = Server::start().await;
    std::fs::create_dir_all(server.file("sessions/a")).unwrap();
    std::fs::write(server.file(KEY), bytes).unwrap();
    let store = server.store();
    (server, store)
}

#[tokio::test]
async fn byte_exact_ranges_and_wholes() {
    let body = noise(9_000_000, 3);
    let (_server, store) = with_object(&body).await;
    for range in [0..1, 0..9_000_000, 8_999_999..9_000_000, 4_000_000..4_500_001] {
        let got = store.get_range(KEY, range.clone()).await.unwrap();
        assert!(got == body[range.start as usize..range.end as usize], "{range:?}");
    }
    assert!(store.get_bytes(KEY, 9_000_000).await.unwrap() == body);
    let chunks = store.get_stream(KEY).await.unwrap();
    assert_eq!(chunks.bytes(), 9_000_000);
    let chunks: Vec<Bytes> = chunks.into_stream().try_collect().await.unwrap();
    assert!(chunks.len() > 1 && chunks.concat() == body);
    let before = store.requests();
    assert!(store.get_range(KEY, 5..5).await.unwrap().is_empty());
    assert_eq!(store.requests(), before);
    let head = store.head(KEY).await.unwrap();
    assert_eq!(head.bytes, 9_000_000);
    assert!(head.last_modified.is_some());
}

#[tokio::test]
async fn an_empty_object_can_be_read() {
    let (_server, store) = with_object(b"").await;
    assert!(store.get_bytes(KEY, 10).await.unwrap().is_empty());
    let mut chunks = store.get_stream(KEY).await.unwrap();
    assert_eq!(chunks.next_chunk().await.unwrap(), None);
}

#[tokio::test]
async fn an_answer_that_is_cut_short_is_asked_for_again() {
    let body = noise(300_000, 4);
    let (server, store) = with_object(&body).await;
    server.fail(Method::GET, "object", Fault::CutBody, 2);
    assert!(store.get_range(KEY, 0..300_000).await.unwrap() == body);
    assert_eq!(store.requests(), 3);

    server.fail(Method::GET, "object", Fault::CutBody, ALWAYS);
    for result in [
        store.get_range(KEY, 10..300_000).await,
        store.get_bytes(KEY, 300_000).await,
    ] {
        let Err(Error::Request(error)) = result else {
            panic!("{result:?}");
        };
        assert_eq!((error.failure, error.attempts), (Failure::Truncated, ATTEMPTS));
        assert_eq!(error.effect, Effect::CertainlyNot);
    }
}

#[tokio::test]
async fn an_object_that_ends_too_early_is_an_error() {
    let (_server, store) = with_object(b"0123456789").await;
    for range in [5..11, 10..12, 50..60] {
        let error = store.get_range(KEY, range.clone()).await.unwrap_err();
        assert_eq!(error.failure(), Some(Failure::Truncated), "{range:?}: {error}");
    }
}

#[tokio::test]
async fn an_answer_of_another_range_is_an_error() {
    let (server, store) = with_object(b"0123456789").await;
    // All of it, as a server does that knows no ranges; and as much as was asked for, without a word on where from.
    for answer in ["0123456789", "012"] {
        server.fail(Method::GET, "object", Fault::Body(answer.into()), 1);
        let error = store.get_range(KEY, 2..5).await.unwrap_err();
        assert!(
            matches!(error.failure(), Some(Failure::Rejected { .. })),
            "{answer}: {error}"
        );
    }
    let elsewhere = Fault::SetHeader("content-range", "bytes 3-5/10".to_owned());
    server.fail(Method::GET, "object", elsewhere, 1);
    let error = store.get_range(KEY, 2..5).await.unwrap_err();
    assert!(
        matches!(error.failure(), Some(Failure::Rejected { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_absent_is_said_at_once() {
    let server = Server::start().await;
    let store = server.store();
    assert_eq!(
        store.get_range("none", 0..5).await.unwrap_err().failure(),
        Some(Failure::NotFound)
    );
    assert_eq!(
        store.get_bytes("none", 5).await.unwrap_err().failure(),
        Some(Failure::NotFound)
    );
    assert_eq!(
        store.head("none").await.unwrap_err().failure(),
        Some(Failure::NotFound)
    );
    assert_eq!(
        store.get_stream("none").await.unwrap_err().failure(),
        Some(Failure::NotFound)
    );
    assert_eq!(store.requests(), 4);
}

#[tokio::test]
async fn memory_is_bounded_by_what_the_caller_takes() {
    let (server, store) = with_object(b"0123456789").await;
    let error = store.get_bytes(KEY, 9).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooLarge {
                bytes: 10,
                limit: 9,
                ..
            }
        ),
        "{error}"
    );
    let requests = store.requests();
    let error = store.get_range(KEY, 0..MOST_READ_BYTES + 1).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert_eq!(store.requests(), requests);
    drop(server);
}

#[tokio::test]
async fn reads_are_retried_and_typed() {
    let (server, store) = with_object(b"0123456789").await;
    server.fail(Method::GET, "object", Fault::Answer(503, "SlowDown"), 1);
    server.fail(Method::GET, "object", Fault::LoseRequest, 1);
    server.fail(Method::GET, "object", Fault::Answer(500, "InternalError"), 1);
    assert_eq!(store.get_range(KEY, 1..3).await.unwrap(), &b"12"[..]);
    assert_eq!(store.requests(), 4);
    server.fail(Method::GET, "object", Fault::Answer(403, "AccessDenied"), 1);
    let error = store.get_range(KEY, 1..3).await.unwrap_err();
    assert_eq!(error.failure(), Some(Failure::Denied));
    assert_eq!(store.requests(), 5);
}
