//! Uploads of large objects in parts: at most two parts are in memory, and nothing appears before the last step.

use std::future::Future;
use std::ops::Range;

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use sha2::{Digest as _, Sha256};

use super::ObjectStore;
use super::attempt::count_bytes;
use super::failure::{Failure, Operation, RequestError};
use super::put::read_part;
use crate::Error;
use crate::spool::Spool;

/// Parts of one object that are on their way at a time.
const PARTS_AT_A_TIME: usize = 2;

/// S3 takes no more.
const MOST_PARTS: u64 = 10_000;

impl ObjectStore {
    /// Uploads in parts. Returns what S3 gives as the SHA-256 of such an object.
    pub(super) async fn put_in_parts(
        &self,
        key: &str,
        object: &Spool,
        digest: &[u8; 32],
    ) -> Result<String, Error> {
        let part_bytes = self.options().part_bytes;
        if object.length().div_ceil(part_bytes) > MOST_PARTS {
            return Err(Error::TooLarge {
                key: key.to_owned(),
                bytes: object.length(),
                limit: part_bytes.saturating_mul(MOST_PARTS),
            });
        }
        let upload = self.create_upload(key).await?;
        let uploaded = self.upload_parts(key, &upload, object, digest).await;
        let completed = match uploaded {
            Ok((parts, of_parts)) => self.complete_upload(key, &upload, parts).await.map(|()| of_parts),
            Err(error) => Err(error),
        };
        if completed.is_err() {
            // Harmless if the object has appeared after all: then there is no such upload any more.
            self.abort_upload(key, &upload).await;
        } else {
            count_bytes("written", object.length());
        }
        completed
    }

    async fn create_upload(&self, key: &str) -> Result<String, Error> {
        let operation = Operation::CreateUpload;
        self.request(operation, key, || async {
            let create = self
                .client()
                .create_multipart_upload()
                .bucket(self.bucket())
                .key(self.stored_name(key))
                .checksum_algorithm(ChecksumAlgorithm::Sha256);
            let created = Box::pin(create.send())
                .await
                .map_err(|error| RequestError::of_sdk(operation, key, error))?;
            created.upload_id.ok_or_else(|| {
                let failure = Failure::Rejected { status: 200 };
                RequestError::new(operation, key, failure, "the answer has no upload id")
            })
        })
        .await
    }

    /// The parts, and the SHA-256 over theirs.
    async fn upload_parts(
        &self,
        key: &str,
        upload: &str,
        object: &Spool,
        digest: &[u8; 32],
    ) -> Result<(Vec<CompletedPart>, String), Error> {
        let mut parts = Vec::new();
        let mut of_object = Sha256::new();
        let mut of_parts = Sha256::new();
        let mut under_way = FuturesUnordered::new();
        for (range, number) in ranges(object.length(), self.options().part_bytes).zip(1..) {
            if under_way.len() >= PARTS_AT_A_TIME {
                next_part(&mut under_way, &mut parts).await?;
            }
            let (bytes, part_digest) = read_part(object, range).await?;
            (of_object, of_parts) = hash_on(of_object, of_parts, bytes.clone(), part_digest).await?;
            under_way.push(Box::pin(self.upload_part(
                key,
                upload,
                number,
                bytes,
                part_digest,
            )));
        }
        while !under_way.is_empty() {
            next_part(&mut under_way, &mut parts).await?;
        }
        // The store checks the parts; that they are the object is checked here.
        let sent: [u8; 32] = of_object.finalize().into();
        if sent != *digest {
            return Err(Error::Bug(format!("{key}: the object's digest is another one")));
        }
        parts.sort_by_key(CompletedPart::part_number);
        let of_parts = format!("{}-{}", STANDARD.encode(of_parts.finalize()), parts.len());
        Ok((parts, of_parts))
    }

    async fn upload_part(
        &self,
        key: &str,
        upload: &str,
        number: i32,
        bytes: Bytes,
        digest: [u8; 32],
    ) -> Result<CompletedPart, Error> {
        let operation = Operation::UploadPart;
        let checksum = STANDARD.encode(digest);
        let uploaded = self
            .request(operation, key, || async {
                let part = self
                    .client()
                    .upload_part()
                    .bucket(self.bucket())
                    .key(self.stored_name(key))
                    .upload_id(upload)
                    .part_number(number)
                    .checksum_sha256(&checksum)
                    .body(ByteStream::from(bytes.clone()));
                Box::pin(part.send())
                    .await
                    .map_err(|error| RequestError::of_sdk(operation, key, error))
            })
            .await?;
        Ok(CompletedPart::builder()
            .part_number(number)
            .set_e_tag(uploaded.e_tag)
            .checksum_sha256(checksum)
            .build())
    }

    async fn complete_upload(&self, key: &str, upload: &str, parts: Vec<CompletedPart>) -> Result<(), Error> {
        let operation = Operation::CompleteUpload;
        let parts = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
        self.request(operation, key, || async {
            let complete = self
                .client()
                .complete_multipart_upload()
                .bucket(self.bucket())
                .key(self.stored_name(key))
                .upload_id(upload)
                .multipart_upload(parts.clone());
            Box::pin(complete.send())
                .await
                .map_err(|error| RequestError::of_sdk(operation, key, error))
        })
        .await?;
        Ok(())
    }

    async fn abort_upload(&self, key: &str, upload: &str) {
        let operation = Operation::AbortUpload;
        let aborted = self
            .request(operation, key, || async {
                let abort = self
                    .client()
                    .abort_multipart_upload()
                    .bucket(self.bucket())
                    .key(self.stored_name(key))
                    .upload_id(upload);
                Box::pin(abort.send())
                    .await
                    .map_err(|error| RequestError::of_sdk(operation, key, error))
            })
            .await;
        if let Err(error) = aborted {
            tracing::warn!(key, %error, "an upload was given up, its parts may stay in the store");
        }
    }
}

async fn next_part<Part>(
    under_way: &mut FuturesUnordered<Part>,
    parts: &mut Vec<CompletedPart>,
) -> Result<(), Error>
where
    Part: Future<Output = Result<CompletedPart, Error>>,
{
    if let Some(part) = under_way.next().await {
        parts.push(part?);
    }
    Ok(())
}

async fn hash_on(
    mut of_object: Sha256,
    mut of_parts: Sha256,
    bytes: Bytes,
    part_digest: [u8; 32],
) -> Result<(Sha256, Sha256), Error> {
    let hash = move || {
        of_object.update(&bytes);
        of_parts.update(part_digest);
        (of_object, of_parts)
    };
    tokio::task::spawn_blocking(hash)
        .await
        .map_err(|error| Error::Bug(format!("hashing died: {error}")))
}

fn ranges(length: u64, part_bytes: u64) -> impl Iterator<Item = Range<u64>> {
    let parts = length.div_ceil(part_bytes);
    (0..parts).map(move |part| part * part_bytes..length.min((part + 1) * part_bytes))
}
