use wakelog_store::{Effect, Error, Options, Store};

use crate::support::Database;
use crate::support::proxy::{Loss, cut_at_commit};
use crate::support::rows::{Owner, TOPIC, session, session_with_entries};

/// A batch whose COMMIT is lost on the way; the offset that the store goes on from.
async fn lose_commit(loss: Loss) -> i64 {
    let database = Database::empty().await;
    let store = database.store().await;
    let (before_port, name) = database.url.rsplit_once('/').unwrap();
    let (host, port) = before_port.rsplit_once(':').unwrap();
    let proxy = cut_at_commit(port.parse().unwrap(), loss).await;
    let options = Options {
        url: format!("{host}:{proxy}/{name}"),
        ..database.options()
    };
    let cut_off = Store::connect(options).await.unwrap();

    let mut owner = Owner::claim(&cut_off).await;
    let error = owner
        .try_write(&session_with_entries(session(1), &[b"entry"]))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::CommitUnknown { .. }), "{error}");
    assert_eq!(error.effect(), Effect::Unknown);
    // The pool is not stuck with the connection that was cut.
    let progress = cut_off.progress(TOPIC, 0).await.unwrap().unwrap();
    assert_eq!(store.progress(TOPIC, 0).await.unwrap(), Some(progress));
    assert_eq!(database.rows().await > 0, progress.next_offset > 0);
    progress.next_offset
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_happened_without_an_answer_is_unknown() {
    assert_eq!(lose_commit(Loss::OfTheAnswer).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_never_arrived_is_unknown() {
    assert_eq!(lose_commit(Loss::OfTheRequest).await, 0);
}
