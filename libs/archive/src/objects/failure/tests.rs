//! What each answer means.

use super::*;

#[test]
fn statuses_and_codes_have_one_meaning_each() {
    let table = [
        (404, Some("NoSuchKey"), Failure::NotFound),
        (404, None, Failure::NotFound),
        (404, Some("NoSuchBucket"), Failure::BucketNotFound),
        (403, Some("AccessDenied"), Failure::Denied),
        (401, None, Failure::Denied),
        (403, Some("RequestTimeTooSkewed"), Failure::ClockSkew),
        (404, Some("InvalidAccessKeyId"), Failure::Denied),
        (405, Some("MethodNotAllowed"), Failure::ReadOnly),
        (409, Some("ConditionalRequestConflict"), Failure::Conflict),
        (412, Some("PreconditionFailed"), Failure::PreconditionFailed),
        (503, Some("SlowDown"), Failure::Throttled),
        (429, None, Failure::Throttled),
        (503, Some("ServiceUnavailable"), Failure::Unavailable),
        (503, None, Failure::Unavailable),
        (500, Some("InternalError"), Failure::Unavailable),
        (400, Some("RequestTimeout"), Failure::Unavailable),
        (400, Some("BadDigest"), Failure::Corrupt),
        (400, Some("XAmzContentSHA256Mismatch"), Failure::Corrupt),
        (416, Some("InvalidRange"), Failure::Truncated),
        (400, Some("InvalidArgument"), Failure::Rejected { status: 400 }),
        (501, Some("NotImplemented"), Failure::Rejected { status: 501 }),
        (301, Some("PermanentRedirect"), Failure::Rejected { status: 301 }),
    ];
    for (status, code, expected) in table {
        assert_eq!(classify(status, code), expected, "{status} {code:?}");
    }
}

#[test]
fn only_a_write_can_have_had_an_effect() {
    for operation in [
        Operation::Put,
        Operation::CreateUpload,
        Operation::UploadPart,
        Operation::CompleteUpload,
        Operation::AbortUpload,
        Operation::Delete,
    ] {
        let unknown = RequestError::new(operation, "key", Failure::Unavailable, "");
        assert_eq!(unknown.effect, Effect::Unknown, "{operation:?}");
        for failure in [
            Failure::Denied,
            Failure::ClockSkew,
            Failure::Throttled,
            Failure::NotFound,
        ] {
            let refused = RequestError::new(operation, "key", failure, "");
            assert_eq!(refused.effect, Effect::CertainlyNot, "{operation:?} {failure:?}");
        }
    }
    for operation in [
        Operation::Head,
        Operation::Get,
        Operation::List,
        Operation::HeadBucket,
    ] {
        let unavailable = RequestError::new(operation, "key", Failure::Unavailable, "");
        assert_eq!(unavailable.effect, Effect::CertainlyNot, "{operation:?}");
    }
}

#[test]
fn what_is_repeated_of_an_error_is_bounded() {
    assert_eq!(shown(&"ü".repeat(1000)).chars().count(), MOST_SHOWN);
    let inner = Outer(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens"));
    assert!(is_never_connected(&inner));
    assert_eq!(causes(&inner), "the request failed: nobody listens");
    let reset = Outer(io::Error::from(io::ErrorKind::ConnectionReset));
    assert!(!is_never_connected(&reset));
}

#[derive(Debug, thiserror::Error)]
#[error("the request failed")]
struct Outer(#[source] io::Error);
