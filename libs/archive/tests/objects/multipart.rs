//! Large objects go up in parts, in bounded memory, and appear whole or not at all.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use sha2::{Digest as _, Sha256};
use wakelog_archive::{
    Effect, Error, Failure, ObjectStore, Options, Spool, SpoolOptions, SpoolWriter, Verified,
};

use crate::support::{Fault, Server, noise};

const KEY: &str = "sessions/a/object";
const MIB: usize = 1024 * 1024;
const ALWAYS: usize = usize::MAX;

/// A store that sends 5 MiB at a time.
fn small_parts(server: &Server) -> ObjectStore {
    ObjectStore::new(Options {
        part_bytes: 5 * MIB as u64,
        ..server.options()
    })
    .unwrap()
}

fn of_size(bytes: usize) -> (Vec<u8>, Spool, [u8; 32]) {
    let body = noise(bytes, 5);
    let mut writer = SpoolWriter::new(SpoolOptions::default());
    for chunk in body.chunks(MIB) {
        writer.append(chunk).unwrap();
    }
    let digest = Sha256::digest(&body).into();
    (body, writer.finish(), digest)
}

#[tokio::test]
async fn byte_exact_in_parts() {
    let server = Server::start().await;
    let store = server.store();
    let (body, spool, digest) = of_size(40 * MIB);
    assert!(spool.is_in_file());
    // This server keeps no checksum of an object in parts.
    let done = store.put(KEY, &spool, digest).await.unwrap();
    assert_eq!(done.verified, Verified::ReadBack);
    assert!(std::fs::read(server.file(KEY)).unwrap() == body);
    let parts: BTreeSet<_> = (1..=4)
        .map(|number| (number, server.seen(&format!("partNumber={number}&"))))
        .collect();
    assert_eq!(parts, BTreeSet::from([(1, 1), (2, 1), (3, 1), (4, 0)]));
    assert_eq!(server.unfinished_uploads(), 0);
    // One that does gives the SHA-256 over those of the parts.
    let mut of_parts = Sha256::new();
    for part in body.chunks(16 * MIB) {
        of_parts.update(Sha256::digest(part));
    }
    let of_parts = format!("{}-3", STANDARD.encode(of_parts.finalize()));
    let checksum = Fault::SetHeader("x-amz-checksum-sha256", of_parts);
    server.fail(Method::HEAD, "object", checksum, ALWAYS);
    let done = store.put(KEY, &spool, digest).await.unwrap();
    assert_eq!(done.verified, Verified::ChecksumOfParts);
}

#[tokio::test]
async fn a_part_that_fails_is_sent_again() {
    let server = Server::start().await;
    let (body, spool, digest) = of_size(12 * MIB);
    server.fail(Method::PUT, "partNumber=2", Fault::Answer(503, "SlowDown"), 1);
    server.fail(Method::PUT, "partNumber=3", Fault::LoseAnswer, 1);
    small_parts(&server).put(KEY, &spool, digest).await.unwrap();
    assert!(std::fs::read(server.file(KEY)).unwrap() == body);
}

#[tokio::test]
async fn an_upload_that_fails_is_given_up_and_leaves_nothing() {
    let server = Server::start().await;
    let store = small_parts(&server);
    let (_, spool, digest) = of_size(12 * MIB);
    server.fail(
        Method::PUT,
        "partNumber=3",
        Fault::Answer(403, "AccessDenied"),
        ALWAYS,
    );
    let error = store.put(KEY, &spool, digest).await.unwrap_err();
    assert_eq!(error.failure(), Some(Failure::Denied), "{error}");
    assert_eq!(error.effect(), Effect::CertainlyNot);
    assert_eq!(server.seen("DELETE"), 1);
    assert_eq!(server.unfinished_uploads(), 0);
    assert!(!server.file(KEY).exists());

    // The parts arrive, but they are not what they should be.
    server.heal();
    let error = store.put(KEY, &spool, [1; 32]).await.unwrap_err();
    assert!(matches!(error, Error::Bug(_)), "{error}");
    assert_eq!(server.unfinished_uploads(), 0);
    assert!(!server.file(KEY).exists());
}

#[tokio::test]
async fn an_end_whose_answer_is_lost_is_found() {
    let server = Server::start().await;
    let (body, spool, digest) = of_size(12 * MIB);
    server.fail(Method::POST, "uploadId", Fault::LoseAnswer, 1);
    let done = small_parts(&server).put(KEY, &spool, digest).await.unwrap();
    assert!(done.answer_lost);
    assert!(std::fs::read(server.file(KEY)).unwrap() == body);
}

#[tokio::test]
async fn an_end_that_never_arrives_says_that_it_may_have() {
    let server = Server::start().await;
    let (_, spool, digest) = of_size(12 * MIB);
    server.fail(Method::POST, "uploadId", Fault::LoseRequest, ALWAYS);
    let error = small_parts(&server).put(KEY, &spool, digest).await.unwrap_err();
    assert_eq!(error.failure(), Some(Failure::Unavailable), "{error}");
    assert_eq!(error.effect(), Effect::Unknown);
    assert_eq!(server.unfinished_uploads(), 0);
}
