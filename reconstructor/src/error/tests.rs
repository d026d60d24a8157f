use tonic::Code;
use wakelog_contract::refusal_of;

use super::*;

fn parts(error: Error) -> (Code, RefusalReason, u64, u64, u64) {
    let status = error.into_status();
    let refusal = refusal_of(&status).unwrap();
    (
        status.code(),
        refusal.reason(),
        refusal.expected,
        refusal.limit,
        refusal.retry_delay_ms,
    )
}

#[test]
fn each_refusal_has_the_code_that_says_what_to_do_about_it() {
    let cases = [
        (
            Error::TokenMissing,
            Code::Unauthenticated,
            RefusalReason::TokenMissing,
        ),
        (
            Error::TokenForged,
            Code::Unauthenticated,
            RefusalReason::TokenForged,
        ),
        (
            Error::SessionNotFound,
            Code::NotFound,
            RefusalReason::SessionNotFound,
        ),
        (
            Error::Malformed("x".into()),
            Code::InvalidArgument,
            RefusalReason::Malformed,
        ),
        (
            Error::NotOwner,
            Code::PermissionDenied,
            RefusalReason::TokenForeign,
        ),
        (
            Error::LifetimeEnded,
            Code::FailedPrecondition,
            RefusalReason::LifetimeEnded,
        ),
        (
            Error::LifetimeFailed,
            Code::FailedPrecondition,
            RefusalReason::LifetimeFailed,
        ),
        (
            Error::SessionEmpty,
            Code::FailedPrecondition,
            RefusalReason::SessionEmpty,
        ),
        (
            Error::Conflict("labels"),
            Code::AlreadyExists,
            RefusalReason::Conflict,
        ),
        (Error::Abandoned, Code::Unavailable, RefusalReason::ShuttingDown),
        (
            Error::ShuttingDown,
            Code::Unavailable,
            RefusalReason::ShuttingDown,
        ),
        (
            Error::Corrupt("x".into()),
            Code::Internal,
            RefusalReason::StoreCorrupt,
        ),
        (
            Error::Failpoint("x"),
            Code::Unavailable,
            RefusalReason::DependencyUnavailable,
        ),
        (
            Error::TaskDied,
            Code::Unavailable,
            RefusalReason::DependencyUnavailable,
        ),
        (
            Error::NotInTime {
                what: "x",
                waited: Duration::from_secs(1),
            },
            Code::Unavailable,
            RefusalReason::DependencyUnavailable,
        ),
    ];
    for (error, code, reason) in cases {
        let name = error.to_string();
        assert_eq!(parts(error), (code, reason, 0, 0, 0), "{name}");
    }
}

#[test]
fn the_current_generation_travels_as_expected() {
    assert_eq!(
        parts(Error::Superseded { current: 7 }),
        (Code::FailedPrecondition, RefusalReason::Superseded, 7, 0, 0)
    );
    assert_eq!(
        parts(Error::BindLost { current: 7 }),
        (Code::Aborted, RefusalReason::BindLost, 7, 0, 0)
    );
}

#[test]
fn limits_travel_and_back_pressure_names_a_delay() {
    assert_eq!(
        parts(Error::TooLarge {
            what: "page size",
            actual: 2000,
            limit: 1000
        }),
        (Code::InvalidArgument, RefusalReason::TooLarge, 0, 1000, 0)
    );
    assert_eq!(
        parts(Error::Busy {
            what: "tails",
            limit: 3
        }),
        (Code::ResourceExhausted, RefusalReason::BackPressure, 0, 3, 500)
    );
}

#[test]
fn every_refusal_of_a_bind_is_final() {
    for refusal in [
        BindRefusal::Superseded { current: 2 },
        BindRefusal::Ended,
        BindRefusal::Failed,
        BindRefusal::Empty,
    ] {
        assert_eq!(
            Error::from(refusal).into_status().code(),
            Code::FailedPrecondition,
            "{refusal:?}"
        );
    }
}
