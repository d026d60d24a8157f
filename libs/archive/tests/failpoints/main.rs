//! Requests that are stopped at each step. A test target of its own: failpoints are global to the process.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

use bytes::Bytes;
use fail::FailScenario;
use wakelog_archive::{Effect, Error};

use crate::support::Server;

const KEY: &str = "sessions/a/object";

fn assert_stopped<T: std::fmt::Debug>(result: Result<T, Error>, failpoint: &str, effect: Effect) {
    let error = result.unwrap_err();
    assert!(
        matches!(error, Error::Failpoint { name, .. } if name == failpoint),
        "{error}"
    );
    assert_eq!(error.effect(), effect, "{failpoint}");
}

#[tokio::test]
async fn a_request_can_be_stopped_at_each_step() {
    let scenario = FailScenario::setup();
    let server = Server::start().await;
    let store = server.store();
    // How many requests were sent by then, and whether the object is there.
    let steps = [
        ("archive::before_put", 0, false, Effect::CertainlyNot),
        ("archive::after_put", 1, true, Effect::Unknown),
        ("archive::after_verify", 2, true, Effect::Unknown),
    ];
    for (failpoint, requests, exists, effect) in steps {
        let before = store.requests();
        fail::cfg(failpoint, "return").unwrap();
        let stopped = store.put_bytes(KEY, Bytes::from_static(b"bytes")).await;
        assert_stopped(stopped, failpoint, effect);
        fail::remove(failpoint);
        assert_eq!(store.requests() - before, requests, "{failpoint}");
        assert_eq!(server.file(KEY).exists(), exists, "{failpoint}");
        // The same upload goes through once nothing stops it.
        store.put_bytes(KEY, Bytes::from_static(b"bytes")).await.unwrap();
        store.delete(KEY).await.unwrap();
    }
    store.put_bytes(KEY, Bytes::from_static(b"bytes")).await.unwrap();
    fail::cfg("archive::before_get", "return").unwrap();
    let stopped = store.get_range(KEY, 0..3).await;
    assert_stopped(stopped, "archive::before_get", Effect::CertainlyNot);
    let stopped = store.get_bytes(KEY, 10).await;
    assert_stopped(stopped, "archive::before_get", Effect::CertainlyNot);
    fail::remove("archive::before_get");
    fail::cfg("archive::before_delete", "return").unwrap();
    let stopped = store.delete(KEY).await;
    assert_stopped(stopped, "archive::before_delete", Effect::CertainlyNot);
    let stopped = store.delete_prefix("sessions/a/").await;
    assert_stopped(stopped, "archive::before_delete", Effect::CertainlyNot);
    fail::remove("archive::before_delete");
    assert!(server.file(KEY).exists());
    scenario.teardown();
}
