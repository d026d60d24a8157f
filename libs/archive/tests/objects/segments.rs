//! A segment by way of the store.

use hyper::Method;
use uuid::Uuid;
use wakelog_archive::{
    EntryHead, Error, Failure, ObjectStore, SealedSegment, SegmentFetch, SegmentWriter, SpoolOptions,
    VerifiedSegment, verify_stored,
};
use wakelog_model::limits::PART_SIZE;
use wakelog_model::{LifetimeId, SessionId};

use crate::support::{Fault, Server, noise};

fn bodies() -> Vec<Vec<u8>> {
    (1..=30)
        .map(|seed| noise(200_000 * (seed as usize % 4) + 17, seed))
        .collect()
}

fn seal(bodies: &[Vec<u8>]) -> SealedSegment {
    let session = SessionId(Uuid::from_u128(1));
    let mut writer = SegmentWriter::new(session, SpoolOptions::default()).unwrap();
    for (body, entry_seq) in bodies.iter().zip(1..) {
        let head = EntryHead {
            entry_seq,
            checkpoint: false,
            generation: 1,
            lifetime_id: LifetimeId([1; 16]),
        };
        writer.begin_entry(head).unwrap();
        for part in body.chunks(PART_SIZE) {
            writer.append_part(part).unwrap();
        }
    }
    writer.finish().unwrap()
}

async fn read(store: &ObjectStore, segment: &SealedSegment, first: u64, last: u64) -> Result<Vec<u8>, Error> {
    let mut fetch = SegmentFetch::open(store, segment.key, segment.object_bytes, first, last).await?;
    let mut bytes = Vec::new();
    loop {
        let parts = fetch.next_parts(1_000_000).await?;
        if parts.is_empty() {
            return Ok(bytes);
        }
        let page: usize = parts.iter().map(|part| part.bytes.len()).sum();
        assert!(page < 1_000_000 + PART_SIZE, "{page}");
        for part in parts {
            bytes.extend_from_slice(&part.bytes);
        }
    }
}

async fn verify(store: &ObjectStore, segment: &SealedSegment) -> Result<VerifiedSegment, Error> {
    verify_stored(store, segment.key, segment.object_bytes).await
}

#[tokio::test]
async fn byte_exact_from_entries_to_the_store_and_back() {
    let server = Server::start().await;
    let store = server.store();
    let bodies = bodies();
    let segment = seal(&bodies);
    let key = segment.key.to_string();
    store
        .put(&key, &segment.spool, segment.object_digest)
        .await
        .unwrap();
    assert!(read(&store, &segment, 1, 30).await.unwrap() == bodies.concat());
    assert!(read(&store, &segment, 7, 9).await.unwrap() == bodies[6..9].concat());
    let verified = verify(&store, &segment).await.unwrap();
    assert_eq!(verified.object_digest, segment.object_digest);
    assert_eq!(verified.object_bytes, segment.object_bytes);
    assert_eq!(verified.entries, 30);
}

#[tokio::test]
async fn byte_exact_a_flipped_bit_on_the_way_is_an_error() {
    let server = Server::start().await;
    let store = server.store();
    let segment = seal(&bodies());
    let key = segment.key.to_string();
    store
        .put(&key, &segment.spool, segment.object_digest)
        .await
        .unwrap();
    // The first flip meets the index, or a frame once the index has been read.
    server.fail(Method::GET, "jsonl.zst", Fault::FlipBit, usize::MAX);
    let damaged = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::SegmentDamaged { .. }), "{error}");
        assert!(error.to_string().contains(&key), "{error}");
    };
    damaged(read(&store, &segment, 1, 30).await.map(drop));
    damaged(verify(&store, &segment).await.map(drop));
}

#[tokio::test]
async fn byte_exact_a_stored_segment_of_another_size_or_name_is_not_verified() {
    let server = Server::start().await;
    let store = server.store();
    let (segment, other) = (seal(&bodies()), seal(&bodies()[..29]));
    let key = segment.key.to_string();
    let error = verify(&store, &segment).await.unwrap_err();
    assert_eq!(error.failure(), Some(Failure::NotFound), "{error}");
    store
        .put(&key, &segment.spool, segment.object_digest)
        .await
        .unwrap();
    for bytes in [segment.object_bytes - 1, segment.object_bytes + 1] {
        let error = verify_stored(&store, segment.key, bytes).await.unwrap_err();
        assert!(matches!(error, Error::SegmentDamaged { .. }), "{error}");
    }
    // A good segment under the name of another one.
    store.put(&key, &other.spool, other.object_digest).await.unwrap();
    let error = verify_stored(&store, segment.key, other.object_bytes)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::SegmentDamaged { .. }), "{error}");
}
