//! What an object store's answer, or the lack of one, means.

use std::error::Error as StdError;
use std::io;

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};

use crate::error::Effect;

/// Characters of a server's message that an error repeats.
const MOST_SHOWN: usize = 300;

/// What is asked of an object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// An upload as a whole.
    Put,
    /// The start of an upload in parts.
    CreateUpload,
    /// A part of an upload.
    UploadPart,
    /// The end of an upload in parts: the object appears.
    CompleteUpload,
    /// Giving up an upload in parts.
    AbortUpload,
    /// Size and checksum of an object.
    Head,
    /// An object's bytes.
    Get,
    /// A page of names.
    List,
    /// Removal of an object.
    Delete,
    /// Whether the bucket is there.
    HeadBucket,
}

impl Operation {
    /// A stable snake_case name, for metrics too.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::CreateUpload => "create_upload",
            Self::UploadPart => "upload_part",
            Self::CompleteUpload => "complete_upload",
            Self::AbortUpload => "abort_upload",
            Self::Head => "head",
            Self::Get => "get",
            Self::List => "list",
            Self::Delete => "delete",
            Self::HeadBucket => "head_bucket",
        }
    }

    /// Whether it changes what the store holds. A part or a started upload that is left behind is no object, but it
    /// takes space until the bucket's rules remove it.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Head | Self::Get | Self::List | Self::HeadBucket)
    }
}

/// How a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// There is no such object.
    NotFound,
    /// There is no such bucket.
    BucketNotFound,
    /// The keys do not allow it, or they are wrong.
    Denied,
    /// The request was signed at a time that is not the store's: one of the two clocks is wrong.
    ClockSkew,
    /// The store does not take writes.
    ReadOnly,
    /// Another request about the same object is in the way.
    Conflict,
    /// A condition of the request does not hold.
    PreconditionFailed,
    /// The store asks for fewer requests.
    Throttled,
    /// The store can't be reached, is too slow, or failed.
    Unavailable,
    /// The store received, or holds, other bytes than were sent.
    Corrupt,
    /// Fewer bytes came than the store has, or should have.
    Truncated,
    /// The store does not take the request.
    Rejected {
        /// The HTTP status; 0 if the request was never sent.
        status: u16,
    },
}

impl Failure {
    /// Whether the same request may well succeed a little later.
    pub fn is_retryable(self) -> bool {
        match self {
            // The client signs at the store's time once an answer has told it.
            Self::ClockSkew => true,
            Self::Conflict | Self::Throttled | Self::Unavailable | Self::Corrupt | Self::Truncated => true,
            Self::NotFound
            | Self::BucketNotFound
            | Self::Denied
            | Self::ReadOnly
            | Self::PreconditionFailed
            | Self::Rejected { .. } => false,
        }
    }

    /// A stable snake_case name, for metrics too.
    pub fn kind(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::BucketNotFound => "bucket_not_found",
            Self::Denied => "denied",
            Self::ClockSkew => "clock_skew",
            Self::ReadOnly => "read_only",
            Self::Conflict => "conflict",
            Self::PreconditionFailed => "precondition_failed",
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::Corrupt => "corrupt",
            Self::Truncated => "truncated",
            Self::Rejected { .. } => "rejected",
        }
    }

    /// Whether a write that failed like this can have happened all the same.
    fn effect(self) -> Effect {
        match self {
            // The store said that it did nothing.
            Self::NotFound
            | Self::BucketNotFound
            | Self::Denied
            | Self::ClockSkew
            | Self::ReadOnly
            | Self::Conflict
            | Self::PreconditionFailed
            | Self::Throttled
            | Self::Rejected { .. } => Effect::CertainlyNot,
            Self::Unavailable | Self::Corrupt | Self::Truncated => Effect::Unknown,
        }
    }
}

/// A request that failed, with all its retries.
#[derive(Debug, thiserror::Error)]
#[error("{} of {key:?} failed after {attempts} attempts: {}: {reason}", operation.as_str(), failure.kind())]
pub struct RequestError {
    /// What was asked.
    pub operation: Operation,
    /// The object, the prefix of a list, or the bucket.
    pub key: String,
    /// How it failed the last time.
    pub failure: Failure,
    /// Whether any of the attempts can have had an effect.
    pub effect: Effect,
    /// How many times it was tried.
    pub attempts: u32,
    /// What the store or the client said; no secret and no payload.
    pub reason: String,
}

impl RequestError {
    pub(crate) fn new(
        operation: Operation,
        key: &str,
        failure: Failure,
        reason: impl Into<String>,
    ) -> Box<Self> {
        let effect = match operation.writes() {
            true => failure.effect(),
            false => Effect::CertainlyNot,
        };
        Box::new(Self {
            operation,
            key: key.to_owned(),
            failure,
            effect,
            attempts: 1,
            reason: reason.into(),
        })
    }

    /// The one place where an error of the SDK becomes one of ours.
    pub(super) fn of_sdk<E>(operation: Operation, key: &str, error: SdkError<E, HttpResponse>) -> Box<Self>
    where
        E: ProvideErrorMetadata + StdError + 'static,
    {
        let unavailable = |reason: String| Self::new(operation, key, Failure::Unavailable, reason);
        match &error {
            SdkError::ServiceError(refused) => {
                let status = refused.raw().status().as_u16();
                let failure = classify(status, error.code());
                let code = error.code().unwrap_or("no code");
                let message = error.message().unwrap_or("no message");
                let reason = format!("status {status}, {code}: {message}");
                Self::new(operation, key, failure, shown(&reason))
            }
            SdkError::ConstructionFailure(_) => Self::new(
                operation,
                key,
                Failure::Rejected { status: 0 },
                shown(&causes(&error)),
            ),
            SdkError::DispatchFailure(_) => {
                let mut failed = unavailable(shown(&causes(&error)));
                if is_never_connected(&error) {
                    failed.effect = Effect::CertainlyNot;
                }
                failed
            }
            _ => unavailable(shown(&causes(&error))),
        }
    }
}

/// What an answer with an error status means.
fn classify(status: u16, code: Option<&str>) -> Failure {
    match (status, code.unwrap_or_default()) {
        (_, "NoSuchBucket") => Failure::BucketNotFound,
        (_, "RequestTimeTooSkewed" | "RequestExpired") => Failure::ClockSkew,
        // Not every server says it with 403.
        (_, "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "AccessDenied") => Failure::Denied,
        (
            _,
            "SlowDown" | "Throttling" | "ThrottlingException" | "TooManyRequests" | "RequestLimitExceeded",
        )
        | (429, _) => Failure::Throttled,
        // The checksum or the signed digest of the body is not that of the bytes that arrived.
        (
            400,
            "BadDigest"
            | "InvalidDigest"
            | "XAmzContentSHA256Mismatch"
            | "XAmzContentChecksumMismatch"
            | "IncompleteBody",
        ) => Failure::Corrupt,
        (400 | 408, "RequestTimeout") | (408, _) => Failure::Unavailable,
        (401 | 403, _) => Failure::Denied,
        (404, _) => Failure::NotFound,
        (405, _) => Failure::ReadOnly,
        (409, _) => Failure::Conflict,
        (412, _) => Failure::PreconditionFailed,
        // The object ends before the range begins.
        (416, _) => Failure::Truncated,
        (501, _) => Failure::Rejected { status },
        (500..=599, _) => Failure::Unavailable,
        _ => Failure::Rejected { status },
    }
}

/// Nobody listened, so nothing was sent.
fn is_never_connected(error: &(dyn StdError + 'static)) -> bool {
    let refused = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
        )
    };
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(refused) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The error and what caused it, each thing once.
fn causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

fn shown(text: &str) -> String {
    text.chars().take(MOST_SHOWN).collect()
}

#[cfg(test)]
mod tests;
