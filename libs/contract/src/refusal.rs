//! How a refusal travels in a gRPC status, and which code each reason has.
//!
//! | code | reasons | what a caller may do |
//! |---|---|---|
//! | `UNAUTHENTICATED` | token missing, forged, expired | get a token; an expired lifetime token may be renewed |
//! | `PERMISSION_DENIED` | token foreign | nothing with this token |
//! | `NOT_FOUND` | session unknown or not the caller's | nothing |
//! | `FAILED_PRECONDITION` | gap, superseded, failed, ended, second writer, session empty, send again | final as it stands |
//! | `ABORTED` | bind lost | try again with a new request |
//! | `ALREADY_EXISTS` | conflict | nothing: other bytes are there |
//! | `INVALID_ARGUMENT` | malformed, empty, too large | correct the request |
//! | `RESOURCE_EXHAUSTED` | back-pressure | try again after the delay |
//! | `UNAVAILABLE` | dependency away, shutting down | try again; whether the effect happened is open |
//! | `INTERNAL` | the store does not fit together | call an operator |

use std::time::Duration;

use prost::Message as _;
use prost_types::Any;
use tonic::{Code, Status};
use wakelog_proto::v1::{Refusal, RefusalReason};

#[cfg(test)]
mod tests;

const REFUSAL_TYPE_URL: &str = "type.googleapis.com/wakelog.v1.Refusal";
const REFUSAL_TYPE_NAME: &str = "wakelog.v1.Refusal";
const RETRY_INFO_TYPE_URL: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// A status travels in headers, whose size clients bound.
const MAX_MESSAGE_CHARS: usize = 512;

/// The gRPC code of each reason. The only place that decides it.
pub fn code_of(reason: RefusalReason) -> Code {
    match reason {
        RefusalReason::Unspecified => Code::Unknown,
        RefusalReason::TokenMissing | RefusalReason::TokenForged | RefusalReason::TokenExpired => {
            Code::Unauthenticated
        }
        RefusalReason::TokenForeign => Code::PermissionDenied,
        RefusalReason::SessionNotFound => Code::NotFound,
        RefusalReason::Gap
        | RefusalReason::Superseded
        | RefusalReason::LifetimeFailed
        | RefusalReason::LifetimeEnded
        | RefusalReason::SecondWriter
        | RefusalReason::SessionEmpty => Code::FailedPrecondition,
        RefusalReason::BindLost => Code::Aborted,
        RefusalReason::Conflict => Code::AlreadyExists,
        RefusalReason::Malformed | RefusalReason::EmptyEntry | RefusalReason::TooLarge => {
            Code::InvalidArgument
        }
        RefusalReason::BackPressure => Code::ResourceExhausted,
        RefusalReason::DependencyUnavailable | RefusalReason::ShuttingDown => Code::Unavailable,
        RefusalReason::StoreCorrupt => Code::Internal,
    }
}

/// The stable snake_case name of a reason, for metrics, logs and JSON output.
pub fn reason_name(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::Unspecified => "unspecified",
        RefusalReason::TokenMissing => "token_missing",
        RefusalReason::TokenForged => "token_forged",
        RefusalReason::TokenExpired => "token_expired",
        RefusalReason::TokenForeign => "token_foreign",
        RefusalReason::SessionNotFound => "session_not_found",
        RefusalReason::Gap => "gap",
        RefusalReason::Superseded => "superseded",
        RefusalReason::LifetimeFailed => "lifetime_failed",
        RefusalReason::LifetimeEnded => "lifetime_ended",
        RefusalReason::SecondWriter => "second_writer",
        RefusalReason::BindLost => "bind_lost",
        RefusalReason::Conflict => "conflict",
        RefusalReason::Malformed => "malformed",
        RefusalReason::EmptyEntry => "empty_entry",
        RefusalReason::TooLarge => "too_large",
        RefusalReason::SessionEmpty => "session_empty",
        RefusalReason::BackPressure => "back_pressure",
        RefusalReason::DependencyUnavailable => "dependency_unavailable",
        RefusalReason::ShuttingDown => "shutting_down",
        RefusalReason::StoreCorrupt => "store_corrupt",
    }
}

/// Starts a refusal. Its gRPC code follows from the reason.
pub fn refuse(reason: RefusalReason, message: impl Into<String>) -> RefusalBuilder {
    RefusalBuilder {
        message: message.into(),
        refusal: Refusal {
            reason: reason.into(),
            expected: 0,
            limit: 0,
            retry_delay_ms: 0,
        },
        code: code_of(reason),
    }
}

/// A refusal in the making. [`RefusalBuilder::build`] turns it into a status.
#[derive(Debug, Clone)]
#[must_use]
pub struct RefusalBuilder {
    message: String,
    refusal: Refusal,
    code: Code,
}

impl RefusalBuilder {
    /// What would have been accepted.
    pub fn expected(mut self, expected: u64) -> Self {
        self.refusal.expected = expected;
        self
    }

    /// The limit that was exceeded.
    pub fn limit(mut self, limit: u64) -> Self {
        self.refusal.limit = limit;
        self
    }

    /// After what time a retry makes sense. Also travels as the standard `google.rpc.RetryInfo`.
    pub fn retry_delay(mut self, delay: Duration) -> Self {
        self.refusal.retry_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// The status, with the refusal as a `google.rpc.Status` detail.
    pub fn build(self) -> Status {
        let message: String = self.message.chars().take(MAX_MESSAGE_CHARS).collect();
        let mut details = vec![Any {
            type_url: REFUSAL_TYPE_URL.to_owned(),
            value: self.refusal.encode_to_vec(),
        }];
        if self.refusal.retry_delay_ms > 0 {
            details.push(retry_info(self.refusal.retry_delay_ms));
        }
        let rich = tonic_types::pb::Status {
            code: self.code as i32,
            message: message.clone(),
            details,
        };
        Status::with_details(self.code, message, rich.encode_to_vec().into())
    }
}

impl From<RefusalBuilder> for Status {
    fn from(builder: RefusalBuilder) -> Self {
        builder.build()
    }
}

/// The refusal that a status carries; `None` if the status is not one of our refusals.
pub fn refusal_of(status: &Status) -> Option<Refusal> {
    let rich = tonic_types::pb::Status::decode(status.details()).ok()?;
    let detail = rich
        .details
        .iter()
        .find(|detail| type_name(&detail.type_url) == REFUSAL_TYPE_NAME)?;
    Refusal::decode(detail.value.as_slice()).ok()
}

/// The reason that a status carries. `None` if it carries none, or one that this build does not know.
pub fn reason_of(status: &Status) -> Option<RefusalReason> {
    let reason = RefusalReason::try_from(refusal_of(status)?.reason).ok()?;
    (reason != RefusalReason::Unspecified).then_some(reason)
}

fn type_name(type_url: &str) -> &str {
    type_url.rsplit_once('/').map_or(type_url, |(_, name)| name)
}

fn retry_info(delay_ms: u64) -> Any {
    let delay = prost_types::Duration {
        seconds: i64::try_from(delay_ms / 1000).unwrap_or(i64::MAX),
        nanos: (delay_ms % 1000) as i32 * 1_000_000,
    };
    let info = tonic_types::pb::RetryInfo {
        retry_delay: Some(delay),
    };
    Any {
        type_url: RETRY_INFO_TYPE_URL.to_owned(),
        value: info.encode_to_vec(),
    }
}
