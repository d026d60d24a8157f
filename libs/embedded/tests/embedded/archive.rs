//! The embedded archive: what the archiver relies on.

use std::time::{Duration, Instant};

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::ChecksumAlgorithm;
use tokio::net::TcpStream;
use wakelog_embedded::{ArchiveAddress, Engines, Options};

use crate::common;

async fn start(folder: &std::path::Path) -> (Engines, ArchiveAddress) {
    let options = Options {
        log: false,
        hot_tail: false,
        ..Options::new(folder)
    };
    let engines = Engines::start(options).await.unwrap();
    let address = engines.archive().unwrap();
    (engines, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn checksums_ranges_and_conditional_puts_work() {
    let folder = tempfile::tempdir().unwrap();
    let (engines, address) = start(folder.path()).await;
    let client = common::s3(&address);
    let put = |body: &'static [u8]| {
        let put = client
            .put_object()
            .bucket(&address.bucket)
            .key("a/b")
            .body(ByteStream::from_static(body));
        put.checksum_algorithm(ChecksumAlgorithm::Sha256)
            .if_none_match("*")
            .send()
    };
    let first = put(b"0123456789").await.unwrap();
    assert!(first.checksum_sha256().is_some());
    let second = put(b"other").await.unwrap_err();
    assert_eq!(
        second.raw_response().map(|response| response.status().as_u16()),
        Some(412),
        "{second:?}"
    );
    let get = client.get_object().bucket(&address.bucket).key("a/b");
    let got = get.range("bytes=2-4").send().await.unwrap();
    assert_eq!(got.body.collect().await.unwrap().to_vec(), b"234");
    let head = client
        .head_object()
        .bucket(&address.bucket)
        .key("a/b")
        .send()
        .await
        .unwrap();
    assert_eq!(head.content_length(), Some(10));
    let missing = client
        .get_object()
        .bucket(&address.bucket)
        .key("none")
        .send()
        .await
        .unwrap_err();
    assert!(missing.into_service_error().is_no_such_key());
    engines.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_is_refused_and_the_right_one_is_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let (engines, address) = start(folder.path()).await;
    let wrong = ArchiveAddress {
        secret_key: "wrong".to_owned(),
        ..address.clone()
    };
    let refused = common::s3(&wrong)
        .list_objects_v2()
        .bucket(&address.bucket)
        .send()
        .await
        .unwrap_err();
    assert_eq!(
        refused.raw_response().map(|response| response.status().as_u16()),
        Some(403),
        "{refused:?}"
    );
    assert!(!format!("{address:?} {engines:?}").contains(&address.secret_key));
    engines.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_is_bounded_with_clients_that_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (engines, address) = start(folder.path()).await;
    let client = common::s3(&address);
    client.list_buckets().send().await.unwrap();
    let _silent = TcpStream::connect(address.endpoint.trim_start_matches("http://"))
        .await
        .unwrap();
    let started = Instant::now();
    engines.stop().await.unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(8),
        "{:?}",
        started.elapsed()
    );
}
