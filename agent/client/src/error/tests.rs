use std::sync::Arc;

use super::*;

#[test]
fn a_connection_that_failed_is_no_refusal_and_says_its_cause() {
    let mut status = Status::unavailable("tcp connect error");
    status.set_source(Arc::new(io::Error::other("connection refused")));
    let error = Error::from(status);
    assert!(matches!(&error, Error::Lost { reason } if reason == "connection refused"));
    let refused = Error::from(Status::unavailable("no answer"));
    assert!(matches!(
        refused,
        Error::Refused {
            code: Code::Unavailable,
            ..
        }
    ));
}

#[test]
fn an_answer_of_another_protocol_is_told_apart() {
    let status = Status::unimplemented("grpc-status header missing, mapped from HTTP status code 404");
    assert!(matches!(Error::from(status), Error::NoGrpc { .. }));
    let refused = Error::from(Status::unimplemented("no such service"));
    assert!(matches!(refused, Error::Refused { .. }));
}
