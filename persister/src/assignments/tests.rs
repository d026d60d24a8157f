use wakelog_store::Claim;

use super::{Assignment, Assignments, Lease};
use crate::start::StartDecision;

fn claim(assignments: &Assignments, partition: i32, epoch: i64) -> Lease {
    let lease = Lease::default();
    assignments.claimed(
        partition,
        Assignment {
            claim: Claim {
                epoch,
                next_offset: 0,
                last_record_crc: None,
            },
            start: StartDecision::Start {
                offset: 0,
                check: None,
            },
            lease: lease.clone(),
        },
    );
    lease
}

fn started(assignments: &Assignments, partition: i32) -> Option<i64> {
    assignments
        .start(partition)
        .map(|assignment| assignment.claim.epoch)
}

#[test]
fn a_claim_waits_for_its_records_and_its_worker_is_waited_for() {
    let assignments = Assignments::default();
    assert_eq!(started(&assignments, 1), None);
    let lease = claim(&assignments, 1, 7);
    assert_eq!(started(&assignments, 1), Some(7));
    assert_eq!(started(&assignments, 1), None);
    let stopping = assignments.release(1);
    assert_eq!(stopping.len(), 1);
    assert!(lease.stop.is_cancelled() && !lease.ended.is_cancelled());
    assert!(assignments.release(1).is_empty() && assignments.release(2).is_empty());
}

#[test]
fn a_claim_that_was_given_back_before_its_records_came_starts_nothing() {
    let assignments = Assignments::default();
    claim(&assignments, 1, 7);
    assert!(
        assignments.release(1).is_empty(),
        "there is no worker to wait for"
    );
    claim(&assignments, 1, 8);
    assert_eq!(started(&assignments, 1), None, "these are the records of epoch 7");
    assert_eq!(started(&assignments, 1), Some(8));
}

#[test]
fn a_claim_that_came_too_late_for_its_records_is_passed_over() {
    let assignments = Assignments::default();
    claim(&assignments, 1, 7);
    claim(&assignments, 1, 8);
    assert_eq!(started(&assignments, 1), Some(8));
    assert_eq!(started(&assignments, 1), None);
}

#[test]
fn leaving_stops_everything() {
    let assignments = Assignments::default();
    let (one, two, waiting) = (
        claim(&assignments, 1, 1),
        claim(&assignments, 2, 1),
        claim(&assignments, 3, 1),
    );
    assert!(started(&assignments, 1).is_some() && started(&assignments, 2).is_some());
    two.ended.cancel();
    assert_eq!(assignments.release_all().len(), 2);
    assert!(one.stop.is_cancelled() && two.stop.is_cancelled() && waiting.stop.is_cancelled());
}
