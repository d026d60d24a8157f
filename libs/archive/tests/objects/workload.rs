//! What every S3 server has to do for the archive.

use bytes::Bytes;
use futures::TryStreamExt as _;
use sha2::{Digest as _, Sha256};
use wakelog_archive::{BucketState, Failure, ObjectStore, Spool};

use crate::support::{Server, noise};

pub(crate) async fn run(store: &ObjectStore) {
    assert_eq!(store.check().await.unwrap(), BucketState::Ready);
    assert_eq!(store.check_write().await.unwrap(), BucketState::Ready);
    let small = noise(100_000, 1);
    let large = noise(40 * 1024 * 1024 + 1, 2);
    for (key, body) in [("sessions/w/small", &small), ("sessions/w/large", &large)] {
        let object = Spool::from(Bytes::copy_from_slice(body));
        let digest: [u8; 32] = Sha256::digest(body).into();
        for _ in 0..2 {
            store.put(key, &object, digest).await.unwrap();
        }
        store.verify(key, body.len() as u64, digest).await.unwrap();
        assert_eq!(store.head(key).await.unwrap().bytes, body.len() as u64);
        assert_eq!(
            store.get_range(key, 10..100_000).await.unwrap(),
            body[10..100_000]
        );
        let chunks = store.get_stream(key).await.unwrap().into_stream();
        let chunks: Vec<Bytes> = chunks.try_collect().await.unwrap();
        assert!(chunks.concat() == *body);
        let beyond = store.get_range(key, 0..body.len() as u64 + 1).await.unwrap_err();
        assert_eq!(beyond.failure(), Some(Failure::Truncated), "{beyond}");
        let wrong = store.put(key, &object, [9; 32]).await;
        assert!(wrong.is_err());
        store.verify(key, body.len() as u64, digest).await.unwrap();
    }
    store
        .put_bytes("sessions/wx/other", Bytes::from_static(b"x"))
        .await
        .unwrap();
    let listed: Vec<_> = store.list("sessions/w", None).try_collect().await.unwrap();
    let names: Vec<_> = listed.iter().map(|object| object.key.as_str()).collect();
    assert_eq!(
        names,
        ["sessions/w/large", "sessions/w/small", "sessions/wx/other"]
    );
    let after = store
        .list_page("sessions/w/", Some("sessions/w/large"))
        .await
        .unwrap();
    assert_eq!(after.objects.len(), 1);
    assert_eq!(store.delete_prefix("sessions/w/").await.unwrap(), 2);
    store.delete("sessions/wx/other").await.unwrap();
    store.delete("sessions/wx/other").await.unwrap();
    let absent = store.get_bytes("sessions/wx/other", 10).await.unwrap_err();
    assert_eq!(absent.failure(), Some(Failure::NotFound), "{absent}");
}

#[tokio::test]
async fn the_embedded_server_does_what_the_archive_needs() {
    let server = Server::start().await;
    run(&server.store()).await;
}
