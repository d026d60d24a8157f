//! Uploads: sent with a checksum, then verified by what the store says it holds.

use std::ops::Range;

use aws_sdk_s3::primitives::ByteStream;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fail::fail_point;
use sha2::{Digest as _, Sha256};

use super::ObjectStore;
use super::attempt::count_bytes;
use super::failure::{Operation, RequestError};
use super::verify::{Expected, Verified};
use crate::Error;
use crate::error::Effect;
use crate::spool::Spool;

/// What came of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Put {
    /// How the store was found to hold the object.
    pub verified: Verified,
    /// The upload was never answered, but the object is there.
    pub answer_lost: bool,
}

impl ObjectStore {
    /// Uploads the object and verifies it. `digest` is its SHA-256. Objects above [`super::Options::part_bytes`] go up in
    /// parts, at most two of which are in memory.
    ///
    /// A repeat is harmless for names that hold the digest. An upload that was given up may leave parts behind, which a
    /// rule of the bucket has to remove.
    pub async fn put(&self, key: &str, object: &Spool, digest: [u8; 32]) -> Result<Put, Error> {
        fail_point!("archive::before_put", |_| Err(Error::Failpoint {
            name: "archive::before_put",
            effect: Effect::CertainlyNot,
        }));
        let mut expected = Expected {
            bytes: object.length(),
            digest,
            of_parts: None,
        };
        let sent = if object.length() <= self.options().part_bytes {
            self.put_whole(key, object, &digest).await
        } else {
            let parts = self.put_in_parts(key, object, &digest).await;
            parts.map(|of_parts| expected.of_parts = Some(of_parts))
        };
        let lost = match sent {
            Ok(()) => None,
            // It may have happened: then it is there, and the same bytes are.
            Err(error) if error.effect() == Effect::Unknown => Some(error),
            Err(error) => return Err(error),
        };
        fail_point!("archive::after_put", |_| Err(Error::Failpoint {
            name: "archive::after_put",
            effect: Effect::Unknown,
        }));
        let verified = match (self.verify_expected(key, &expected).await, lost) {
            (Ok(verified), None) => Put {
                verified,
                answer_lost: false,
            },
            (Ok(verified), Some(error)) => {
                tracing::info!(key, %error, "an upload that was not answered is in the store");
                Put {
                    verified,
                    answer_lost: true,
                }
            }
            (Err(_), Some(error)) => return Err(error),
            (Err(error), None) => return Err(after_an_upload(error)),
        };
        fail_point!("archive::after_verify", |_| Err(Error::Failpoint {
            name: "archive::after_verify",
            effect: Effect::Unknown,
        }));
        Ok(verified)
    }

    /// Uploads and verifies a small object, whose bytes are in memory anyway.
    pub async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<Put, Error> {
        let digest = Sha256::digest(&bytes).into();
        self.put(key, &Spool::from(bytes), digest).await
    }

    async fn put_whole(&self, key: &str, object: &Spool, digest: &[u8; 32]) -> Result<(), Error> {
        let (bytes, _) = read_part(object, 0..object.length()).await?;
        let checksum = STANDARD.encode(digest);
        self.request(Operation::Put, key, || async {
            let put = self
                .client()
                .put_object()
                .bucket(self.bucket())
                .key(self.stored_name(key))
                .checksum_sha256(&checksum)
                .body(ByteStream::from(bytes.clone()));
            Box::pin(put.send())
                .await
                .map_err(|error| RequestError::of_sdk(Operation::Put, key, error))
        })
        .await?;
        count_bytes("written", object.length());
        Ok(())
    }
}

/// The bytes of a part and their SHA-256, off the async threads where that takes long.
pub(super) async fn read_part(object: &Spool, range: Range<u64>) -> Result<(Bytes, [u8; 32]), Error> {
    let object = object.clone();
    let read = move || {
        let bytes = object.read(range)?;
        let digest = Sha256::digest(&bytes).into();
        Ok((bytes, digest))
    };
    tokio::task::spawn_blocking(read)
        .await
        .map_err(|error| Error::Bug(format!("reading the spool died: {error}")))?
}

/// A verification changes nothing, but the upload before it did.
fn after_an_upload(error: Error) -> Error {
    match error {
        Error::Request(mut failed) => {
            failed.effect = Effect::Unknown;
            Error::Request(failed)
        }
        other => other,
    }
}
