use wakelog_store::Error as StoreError;

use super::{Verdict, verdict};
use crate::batch::BatchError;
use crate::counts::Counts;
use crate::status::StopReason;

fn of(error: StoreError, commit_in_doubt: bool) -> Verdict {
    verdict(&BatchError::Store(error), commit_in_doubt)
}

fn offset_mismatch() -> StoreError {
    StoreError::OffsetMismatch {
        topic: "t".to_owned(),
        partition: 0,
        held: 1,
        current: 2,
    }
}

#[test]
fn what_may_pass_is_tried_again() {
    let passing = [
        StoreError::PoolTimedOut,
        StoreError::Closed,
        StoreError::Unreachable {
            reason: "refused".to_owned(),
        },
        StoreError::LockTimedOut { what: "row" },
        StoreError::Failpoint {
            name: "store::before_commit",
        },
    ];
    for error in passing {
        let text = error.to_string();
        assert_eq!(of(error, false), Verdict::Redo, "{text}");
    }
}

#[test]
fn an_unanswered_commit_is_looked_up_before_anything_else() {
    let error = StoreError::CommitUnknown {
        reason: "reset".to_owned(),
    };
    let unknown = BatchError::CommitUnknown {
        error,
        counts: Counts::default(),
    };
    assert_eq!(verdict(&unknown, false), Verdict::ReadProgress);
    assert_eq!(
        of(offset_mismatch(), true),
        Verdict::ReadProgress,
        "it may have been applied late"
    );
}

#[test]
fn a_moved_offset_without_one_is_a_bug_and_stops() {
    assert!(matches!(
        of(offset_mismatch(), false),
        Verdict::Stop(StopReason::Bug { .. })
    ));
    assert!(matches!(
        of(StoreError::Bug("key".to_owned()), true),
        Verdict::Stop(StopReason::Bug { .. })
    ));
}

#[test]
fn a_fence_ends_it() {
    let fenced = || StoreError::Fenced {
        topic: "t".to_owned(),
        partition: 0,
        held: 1,
        current: 2,
    };
    assert_eq!(of(fenced(), false), Verdict::Fenced);
    assert_eq!(of(fenced(), true), Verdict::Fenced);
}

#[test]
fn exactly_once_fold_a_store_that_lost_commits_is_seen() {
    let behind = || StoreError::OffsetMismatch {
        topic: "t".to_owned(),
        partition: 0,
        held: 2,
        current: 1,
    };
    assert!(matches!(of(behind(), false), Verdict::WentBack { .. }));
    assert_eq!(
        of(behind(), true),
        Verdict::ReadProgress,
        "progress tells as well"
    );
    let unclaimed = StoreError::Fenced {
        topic: "t".to_owned(),
        partition: 0,
        held: 2,
        current: 1,
    };
    assert!(matches!(of(unclaimed, false), Verdict::WentBack { .. }));
}
