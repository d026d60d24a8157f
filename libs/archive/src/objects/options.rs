//! Where the bucket is, and the bounds of every wait.

use std::fmt;
use std::time::Duration;

use super::retry::RetryPolicy;
use crate::Error;

/// S3 takes no smaller part but the last.
const LEAST_PART_BYTES: u64 = 5 * 1024 * 1024;

/// A part is held in memory.
const MOST_PART_BYTES: u64 = 1024 * 1024 * 1024;

/// Where the objects are, and how long to wait for them.
#[derive(Clone)]
pub struct Options {
    /// `http://host:port` of an S3 server; `None`: Amazon's, by the region.
    pub endpoint: Option<String>,
    /// The region that requests are signed for.
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// The access key; `None`: requests are not signed.
    pub access_key: Option<String>,
    /// The secret key; there if and only if the access key is. It is in no log and in no error.
    pub secret_key: Option<String>,
    /// What temporary keys come with. A secret like the key.
    pub session_token: Option<String>,
    /// Whether the bucket is part of the path and not of the host name. Most servers but Amazon's want that.
    pub path_style: bool,
    /// Below which prefix all of the objects are, without a slash at its start or end; `None`: the whole bucket.
    pub prefix: Option<String>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long the first byte of an answer may take.
    pub read_timeout: Duration,
    /// How long one attempt of a request may take as a whole, with its body.
    pub attempt_timeout: Duration,
    /// When a request is tried again, and when that ends.
    pub retry: RetryPolicy,
    /// Objects that are larger are uploaded in parts of this many bytes. Each upload holds two parts in memory.
    pub part_bytes: u64,
    /// Requests at a time, at most.
    pub concurrency: usize,
}

impl Options {
    /// A bucket with the default bounds.
    pub fn new(region: impl Into<String>, bucket: impl Into<String>) -> Self {
        Self {
            endpoint: None,
            region: region.into(),
            bucket: bucket.into(),
            access_key: None,
            secret_key: None,
            session_token: None,
            path_style: false,
            prefix: None,
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(30),
            attempt_timeout: Duration::from_secs(60),
            retry: RetryPolicy::default(),
            part_bytes: 16 * 1024 * 1024,
            concurrency: 16,
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let endpoint = self.endpoint.as_deref();
        let has_scheme = endpoint.is_none_or(|url| url.starts_with("http://") || url.starts_with("https://"));
        let segments = self.prefix.as_deref().map(|prefix| prefix.split('/'));
        let prefix_is_clean = segments.is_none_or(|mut segments| {
            segments.all(|segment| !segment.is_empty() && segment != "." && segment != "..")
        });
        let has_no_time = [self.connect_timeout, self.read_timeout, self.attempt_timeout]
            .iter()
            .any(Duration::is_zero);
        let rules = [
            (!has_scheme, "the endpoint is not an http or https URL"),
            (self.region.is_empty(), "there is no region"),
            (self.bucket.is_empty(), "there is no bucket"),
            (
                self.access_key.is_some() != self.secret_key.is_some(),
                "access key and secret key go together",
            ),
            (
                self.session_token.is_some() && self.access_key.is_none(),
                "a session token comes with keys",
            ),
            (!prefix_is_clean, "the prefix has an empty part, '.' or '..'"),
            (has_no_time, "a time-out is zero"),
            (self.retry.max_attempts == 0, "there are no attempts"),
            (
                self.part_bytes < LEAST_PART_BYTES || self.part_bytes > MOST_PART_BYTES,
                "part_bytes is below 5 MiB or above 1 GiB",
            ),
            (self.concurrency == 0, "concurrency is 0"),
        ];
        match rules.iter().find(|(broken, _)| *broken) {
            Some((_, reason)) => Err(Error::Configuration {
                reason: (*reason).to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// What every name in the bucket begins with; empty, or with a slash at its end.
    pub(super) fn stored_prefix(&self) -> String {
        self.prefix
            .as_deref()
            .map_or_else(String::new, |prefix| format!("{prefix}/"))
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = |secret: &Option<String>| secret.as_ref().map(|_| "(hidden)");
        formatter
            .debug_struct("Options")
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .field("bucket", &self.bucket)
            .field("access_key", &self.access_key)
            .field("secret_key", &hidden(&self.secret_key))
            .field("session_token", &hidden(&self.session_token))
            .field("path_style", &self.path_style)
            .field("prefix", &self.prefix)
            .field("connect_timeout", &self.connect_timeout)
            .field("read_timeout", &self.read_timeout)
            .field("attempt_timeout", &self.attempt_timeout)
            .field("retry", &self.retry)
            .field("part_bytes", &self.part_bytes)
            .field("concurrency", &self.concurrency)
            .finish()
    }
}

#[cfg(test)]
mod tests;
