//! An S3 client without anything around it: no retries, no `HEAD` after a `PUT`.

use std::time::{Duration, Instant};

use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::{Client, Config};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use sha2::{Digest as _, Sha256};

use crate::Error;

/// A client of one prefix of a bucket.
#[derive(Clone)]
pub(crate) struct RawObjects {
    client: Client,
    bucket: String,
    prefix: String,
}

/// An object to put, with the checksum that the server checks it by.
#[derive(Clone)]
pub(crate) struct RawObject {
    name: String,
    bytes: Bytes,
    checksum: String,
}

impl RawObject {
    pub(crate) fn new(name: String, bytes: Bytes) -> Self {
        let checksum = STANDARD.encode(Sha256::digest(&bytes));
        Self {
            name,
            bytes,
            checksum,
        }
    }

    pub(crate) fn length(&self) -> usize {
        self.bytes.len()
    }
}

impl RawObjects {
    pub(crate) fn new(options: wakelog_archive::Options) -> Self {
        let mut config = Config::builder()
            .behavior_version_latest()
            .region(Region::new(options.region))
            .force_path_style(options.path_style)
            .retry_config(RetryConfig::disabled())
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
        config.set_endpoint_url(options.endpoint);
        if let (Some(access), Some(secret)) = (options.access_key, options.secret_key) {
            let keys = Credentials::new(access, secret, options.session_token, None, "bench");
            config = config.credentials_provider(keys);
        } else {
            config = config.allow_no_auth();
        }
        Self {
            client: Client::from_conf(config.build()),
            bucket: options.bucket,
            prefix: options.prefix.unwrap_or_default(),
        }
    }

    /// Puts all of them, so many at a time. Returns how long it took.
    pub(crate) async fn put_all(&self, objects: Vec<RawObject>, at_a_time: usize) -> Result<Duration, Error> {
        let started = Instant::now();
        stream::iter(objects.into_iter().map(Ok))
            .try_for_each_concurrent(at_a_time, |object| self.put(object))
            .await?;
        Ok(started.elapsed())
    }

    pub(crate) async fn put(&self, object: RawObject) -> Result<(), Error> {
        let put = self
            .client
            .put_object()
            .bucket(&self.bucket)
            .key(format!("{}/{}", self.prefix, object.name))
            .checksum_sha256(object.checksum)
            .body(ByteStream::from(object.bytes));
        Box::pin(put.send()).await.map_err(Error::objects)?;
        Ok(())
    }

    /// Reads all of them in order, some ahead, and drops their bytes. Returns how many bytes there were.
    pub(crate) async fn read_all(&self, names: Vec<String>, ahead: usize) -> Result<u64, Error> {
        stream::iter(names.into_iter().map(|name| self.get(name)))
            .buffered(ahead)
            .try_fold(0, |length, bytes| {
                let read = std::hint::black_box(bytes).len() as u64;
                std::future::ready(Ok(length + read))
            })
            .await
    }

    async fn get(&self, name: String) -> Result<Bytes, Error> {
        let get = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(format!("{}/{name}", self.prefix));
        let got = Box::pin(get.send()).await.map_err(Error::objects)?;
        let body = got.body.collect().await.map_err(Error::objects)?;
        Ok(body.into_bytes())
    }
}
