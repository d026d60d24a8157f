//! Reads of bounded size.

use std::ops::Range;
use std::time::SystemTime;

use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::types::ChecksumMode;
use bytes::{Bytes, BytesMut};
use fail::fail_point;
use futures::Stream;

use super::ObjectStore;
use super::attempt::count_bytes;
use super::failure::{Failure, Operation, RequestError};
use crate::Error;

/// Bytes of one read, at most; they are held in memory.
pub const MOST_READ_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes of an object that is read piece by piece, at a time.
const CHUNK_BYTES: u64 = 4 * 1024 * 1024;

/// What the store says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectHead {
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 that the store keeps, in base64; of an object that went up in parts the one over theirs, with `-` and
    /// their number. `None`: it keeps none.
    pub sha256: Option<String>,
    /// When it was written, by the store's clock.
    pub last_modified: Option<SystemTime>,
}

impl ObjectStore {
    /// Size and checksum of an object. Fails with [`Failure::NotFound`].
    pub async fn head(&self, key: &str) -> Result<ObjectHead, Error> {
        let operation = Operation::Head;
        self.request(operation, key, || async {
            let head = self
                .client()
                .head_object()
                .bucket(self.bucket())
                .key(self.stored_name(key))
                .checksum_mode(ChecksumMode::Enabled);
            let head = Box::pin(head.send())
                .await
                .map_err(|error| RequestError::of_sdk(operation, key, error))?;
            Ok(ObjectHead {
                bytes: size(operation, key, head.content_length)?,
                sha256: head.checksum_sha256,
                last_modified: head.last_modified.and_then(|time| time.try_into().ok()),
            })
        })
        .await
    }

    /// The bytes of the range, all of them or an error: an answer that is cut short is tried again, then it is
    /// [`Failure::Truncated`]. [`Error::TooLarge`] above [`MOST_READ_BYTES`].
    pub async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, Error> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let length = range.end - range.start;
        if length > MOST_READ_BYTES {
            return Err(Error::TooLarge {
                key: key.to_owned(),
                bytes: length,
                limit: MOST_READ_BYTES,
            });
        }
        fail_point!("archive::before_get", |_| Err(Error::Failpoint {
            name: "archive::before_get",
            effect: crate::error::Effect::CertainlyNot,
        }));
        let asked = format!("bytes={}-{}", range.start, range.end - 1);
        let expected_range = format!("bytes {}-{}/", range.start, range.end - 1);
        self.request(Operation::Get, key, || async {
            let got = self.get(key, Some(&asked)).await?;
            let sent = size(Operation::Get, key, got.content_length)?;
            if sent < length {
                return Err(failed(
                    key,
                    Failure::Truncated,
                    format!("{sent} bytes of {length} are there"),
                ));
            }
            let sent_range = got.content_range.as_deref().unwrap_or_default();
            if sent > length || !sent_range.starts_with(&expected_range) {
                let rejected = Failure::Rejected { status: 200 };
                return Err(failed(key, rejected, "the answer is of another range"));
            }
            read_body(key, got, length).await
        })
        .await
    }

    /// A whole object, which has at most `limit` bytes. [`Error::TooLarge`], [`Failure::NotFound`].
    pub async fn get_bytes(&self, key: &str, limit: u64) -> Result<Bytes, Error> {
        let limit = limit.min(MOST_READ_BYTES);
        fail_point!("archive::before_get", |_| Err(Error::Failpoint {
            name: "archive::before_get",
            effect: crate::error::Effect::CertainlyNot,
        }));
        let answer = self
            .request(Operation::Get, key, || async {
                let got = self.get(key, None).await?;
                let bytes = size(Operation::Get, key, got.content_length)?;
                if bytes > limit {
                    return Ok(Err(bytes));
                }
                read_body(key, got, bytes).await.map(Ok)
            })
            .await?;
        answer.map_err(|bytes| Error::TooLarge {
            key: key.to_owned(),
            bytes,
            limit,
        })
    }

    /// A whole object of any size, piece by piece. Fails with [`Failure::NotFound`].
    pub async fn get_stream(&self, key: &str) -> Result<ObjectChunks, Error> {
        let head = self.head(key).await?;
        Ok(self.chunks(key, head.bytes))
    }

    pub(super) fn chunks(&self, key: &str, bytes: u64) -> ObjectChunks {
        ObjectChunks {
            store: self.clone(),
            key: key.to_owned(),
            bytes,
            offset: 0,
        }
    }

    async fn get(&self, key: &str, range: Option<&str>) -> Result<GetObjectOutput, Box<RequestError>> {
        let get = self
            .client()
            .get_object()
            .bucket(self.bucket())
            .key(self.stored_name(key))
            .set_range(range.map(str::to_owned));
        Box::pin(get.send())
            .await
            .map_err(|error| RequestError::of_sdk(Operation::Get, key, error))
    }
}

/// An object that is read piece by piece. Each piece is a request of its own, with its own retries, so a slow reader
/// holds no connection.
#[derive(Debug)]
pub struct ObjectChunks {
    store: ObjectStore,
    key: String,
    bytes: u64,
    offset: u64,
}

impl ObjectChunks {
    /// The object's size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next piece, a few MiB; `None` at the end.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, Error> {
        if self.offset >= self.bytes {
            return Ok(None);
        }
        let end = self.bytes.min(self.offset + CHUNK_BYTES);
        let chunk = self.store.get_range(&self.key, self.offset..end).await?;
        self.offset = end;
        Ok(Some(chunk))
    }

    /// The pieces as a stream, which ends after its first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, Error>> + Send {
        futures::stream::try_unfold(self, |mut chunks| async move {
            Ok(chunks.next_chunk().await?.map(|chunk| (chunk, chunks)))
        })
    }
}

/// `length` is bounded by the caller, and known to be what the store announced.
async fn read_body(key: &str, got: GetObjectOutput, length: u64) -> Result<Bytes, Box<RequestError>> {
    let mut body = got.body;
    let mut bytes = BytesMut::with_capacity(length as usize);
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| {
            let reason = format!("it ended after {} bytes of {length}: {error}", bytes.len());
            failed(key, Failure::Truncated, reason)
        })?;
        if (bytes.len() + chunk.len()) as u64 > length {
            let rejected = Failure::Rejected { status: 200 };
            return Err(failed(key, rejected, "more bytes came than were announced"));
        }
        bytes.extend_from_slice(&chunk);
    }
    if (bytes.len() as u64) < length {
        let reason = format!("it ended after {} bytes of {length}", bytes.len());
        return Err(failed(key, Failure::Truncated, reason));
    }
    count_bytes("read", length);
    Ok(bytes.freeze())
}

fn size(operation: Operation, key: &str, content_length: Option<i64>) -> Result<u64, Box<RequestError>> {
    content_length
        .and_then(|length| u64::try_from(length).ok())
        .ok_or_else(|| {
            let rejected = Failure::Rejected { status: 200 };
            RequestError::new(operation, key, rejected, "the answer has no size")
        })
}

fn failed(key: &str, failure: Failure, reason: impl Into<String>) -> Box<RequestError> {
    RequestError::new(Operation::Get, key, failure, reason)
}
