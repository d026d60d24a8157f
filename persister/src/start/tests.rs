use wakelog_store::Claim;
use wakelog_stream::Watermarks;

use super::{RecordCheck, StartDecision, end_is_back, start_decision};
use crate::status::StopReason;

fn decide(next_offset: i64, crc: Option<u32>, low: i64, high: i64) -> StartDecision {
    let claim = Claim {
        epoch: 7,
        next_offset,
        last_record_crc: crc,
    };
    start_decision(&claim, &Watermarks { low, high })
}

#[test]
fn a_first_claim_of_a_whole_log_starts_at_zero() {
    let start = StartDecision::Start {
        offset: 0,
        check: None,
    };
    assert_eq!(decide(0, None, 0, 0), start);
    assert_eq!(decide(0, None, 0, 100), start);
}

#[test]
fn a_first_claim_of_a_log_without_its_head_is_a_hole() {
    let hole = StartDecision::Stop(StopReason::RetentionHole {
        next_offset: 0,
        low: 1,
    });
    assert_eq!(decide(0, None, 1, 1), hole);
    assert_eq!(decide(0, None, 1, 50), hole);
}

#[test]
fn the_record_before_is_checked_wherever_the_log_still_has_it() {
    let start = |offset| StartDecision::Start {
        offset,
        check: Some(RecordCheck { offset, crc: 9 }),
    };
    assert_eq!(decide(1, Some(9), 0, 1), start(0));
    assert_eq!(
        decide(10, Some(9), 9, 10),
        start(9),
        "it is the only record of the log"
    );
    assert_eq!(decide(10, Some(9), 9, 20), start(9));
    assert_eq!(decide(10, Some(9), 0, 10), start(9), "all is folded");
}

#[test]
fn retention_may_eat_what_is_folded() {
    let start = StartDecision::Start {
        offset: 10,
        check: None,
    };
    assert_eq!(decide(10, Some(9), 10, 10), start);
    assert_eq!(decide(10, Some(9), 10, 20), start);
    // As a rebuild leaves a partition of which nothing but states is there.
    assert_eq!(decide(10, None, 10, 20), start);
}

#[test]
fn retention_may_not_eat_what_is_not_folded() {
    let hole = StartDecision::Stop(StopReason::RetentionHole {
        next_offset: 10,
        low: 11,
    });
    assert_eq!(decide(10, Some(9), 11, 11), hole);
    assert_eq!(decide(10, Some(9), 11, 20), hole);
}

#[test]
fn a_log_that_ends_below_the_claim_is_waited_for() {
    let check = Some(RecordCheck { offset: 9, crc: 9 });
    assert_eq!(
        decide(10, Some(9), 0, 9),
        StartDecision::AwaitEnd { offset: 9, check }
    );
    assert_eq!(
        decide(10, Some(9), 0, 0),
        StartDecision::AwaitEnd { offset: 0, check },
        "a recreated topic"
    );
    assert!(!end_is_back(10, &Watermarks { low: 0, high: 9 }));
    assert!(end_is_back(10, &Watermarks { low: 0, high: 10 }));
}

#[test]
fn progress_without_a_checksum_is_never_trusted() {
    assert!(matches!(
        decide(10, None, 0, 20),
        StartDecision::Stop(StopReason::Bug { .. })
    ));
}
