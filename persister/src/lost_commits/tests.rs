use wakelog_store::Progress;

use super::went_back;

fn stored(epoch: i64, next_offset: i64) -> Progress {
    Progress {
        partition: 0,
        epoch,
        next_offset,
        last_record_crc: None,
    }
}

/// Invariant exactly-once-fold.
#[test]
fn a_store_that_lacks_a_claim_or_a_commit_went_back() {
    assert!(went_back(7, 100, &stored(6, 100)).is_some());
    assert!(
        went_back(7, 100, &stored(6, 120)).is_some(),
        "its claim is gone all the same"
    );
    assert!(went_back(7, 100, &stored(7, 99)).is_some());
}

#[test]
fn what_went_on_did_not_go_back() {
    assert_eq!(went_back(7, 100, &stored(7, 100)), None);
    assert_eq!(
        went_back(7, 100, &stored(7, 130)),
        None,
        "a COMMIT that was read late"
    );
    assert_eq!(
        went_back(7, 100, &stored(8, 90)),
        None,
        "another owner's is not for this one to judge"
    );
}
