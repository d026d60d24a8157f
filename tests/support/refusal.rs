//! Whether an answer is the refusal that it must be.

use std::fmt::Debug;

use tonic::{Code, Status};
use wakelog_contract::refusal_of;
use wakelog_proto::v1::{Refusal, RefusalReason};

/// The code that `refusal.proto` names for each reason. Written down again here, so that the contract is compared with
/// the product and not the product with itself.
pub fn code_of(reason: RefusalReason) -> Code {
    use RefusalReason as Reason;
    match reason {
        Reason::Unspecified => Code::Unknown,
        Reason::TokenMissing | Reason::TokenForged | Reason::TokenExpired => Code::Unauthenticated,
        Reason::TokenForeign => Code::PermissionDenied,
        Reason::SessionNotFound => Code::NotFound,
        Reason::Gap | Reason::Superseded | Reason::LifetimeFailed | Reason::LifetimeEnded => {
            Code::FailedPrecondition
        }
        Reason::SecondWriter | Reason::SessionEmpty => Code::FailedPrecondition,
        Reason::BindLost => Code::Aborted,
        Reason::Conflict => Code::AlreadyExists,
        Reason::Malformed | Reason::EmptyEntry | Reason::TooLarge => Code::InvalidArgument,
        Reason::BackPressure => Code::ResourceExhausted,
        Reason::DependencyUnavailable | Reason::ShuttingDown => Code::Unavailable,
        Reason::StoreCorrupt => Code::Internal,
    }
}

/// The answer must be a refusal for this reason, with its code.
#[track_caller]
pub fn refused<T: Debug>(what: &str, answer: Result<T, Status>, reason: RefusalReason) -> Refusal {
    let status = match answer {
        Ok(taken) => panic!("{what}: it must be refused for {reason:?}, and was taken: {taken:?}"),
        Err(status) => status,
    };
    let refusal = refusal_of(&status);
    let found = refusal.as_ref().map(Refusal::reason);
    assert_eq!(found, Some(reason), "{what}: {status}");
    assert_eq!(status.code(), code_of(reason), "{what}: {status}");
    assert!(!status.message().is_empty(), "{what}: a refusal says why");
    refusal.unwrap_or_default()
}
