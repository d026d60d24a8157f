use wakelog_store::Progress;

use super::{CommitOutcome, SentCommit, commit_outcome};

const SENT: SentCommit = SentCommit {
    epoch: 3,
    from: 10,
    to: 20,
};

fn read(epoch: i64, next_offset: i64) -> CommitOutcome {
    let progress = Progress {
        partition: 0,
        epoch,
        next_offset,
        last_record_crc: Some(1),
    };
    commit_outcome(SENT, Some(&progress))
}

#[test]
fn the_offset_tells_our_own_commit_from_a_lost_one() {
    assert_eq!(read(3, 20), CommitOutcome::Ours);
    assert_eq!(read(3, 10), CommitOutcome::NotApplied);
}

#[test]
fn a_higher_epoch_is_a_fence_whatever_the_offset() {
    for next_offset in [0, 10, 15, 20, 400] {
        assert_eq!(read(4, next_offset), CommitOutcome::Fenced { current: 4 });
    }
}

#[test]
fn what_cannot_be_is_not_explained_away() {
    for impossible in [read(3, 15), read(3, 21)] {
        assert!(
            matches!(impossible, CommitOutcome::Impossible { .. }),
            "{impossible:?}"
        );
    }
}

#[test]
fn exactly_once_fold_a_store_that_lost_commits_is_seen() {
    for lost in [
        read(3, 9),
        read(3, 0),
        read(2, 10),
        read(2, 20),
        commit_outcome(SENT, None),
    ] {
        assert!(matches!(lost, CommitOutcome::WentBack { .. }), "{lost:?}");
    }
}
