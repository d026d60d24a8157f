use wakelog_proto::v1::RefusalReason;

use super::*;
use crate::refuse;

#[test]
fn refusals_have_the_documented_exit_codes() {
    for (reason, exit) in [
        (RefusalReason::TokenMissing, 3),
        (RefusalReason::TokenForged, 3),
        (RefusalReason::TokenExpired, 3),
        (RefusalReason::TokenForeign, 3),
        (RefusalReason::SessionNotFound, 3),
        (RefusalReason::Gap, 4),
        (RefusalReason::Superseded, 4),
        (RefusalReason::LifetimeFailed, 4),
        (RefusalReason::LifetimeEnded, 4),
        (RefusalReason::SecondWriter, 4),
        (RefusalReason::BindLost, 4),
        (RefusalReason::Conflict, 4),
        (RefusalReason::SessionEmpty, 4),
        (RefusalReason::Malformed, 2),
        (RefusalReason::EmptyEntry, 2),
        (RefusalReason::TooLarge, 2),
        (RefusalReason::BackPressure, 5),
        (RefusalReason::DependencyUnavailable, 5),
        (RefusalReason::ShuttingDown, 5),
        (RefusalReason::StoreCorrupt, 1),
    ] {
        let status = refuse(reason, "").build();
        assert_eq!(exit_of(&status).code(), exit, "{reason:?}");
    }
    assert_eq!(exit_of(&Status::ok("")), Exit::Done);
}
