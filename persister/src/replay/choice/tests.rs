use super::super::state::tests::archived_at;
use super::*;
use crate::testing::{PARTITION, session};

fn key(incarnation: u32, offset: u64) -> SnapshotKey {
    SnapshotKey {
        session: session(1),
        incarnation,
        offset,
    }
}

/// What becomes of an older state at `offset` where the partition starts at 50.
fn older(incarnation: u32, offset: u64) -> Option<Choice> {
    let offsets = BTreeMap::from([(PARTITION, 50)]);
    let starts = Starts {
        incarnation: 1,
        offsets: &offsets,
    };
    of_older(key(incarnation, offset), archived_at(offset), &starts)
}

/// Invariant exactly-once-fold: a state that is older than the partition's start may lack what nobody has any more.
#[test]
fn exactly_once_fold_an_older_state_counts_if_the_topic_has_the_rest() {
    assert!(matches!(older(1, 50), Some(Choice::State(..))));
    assert!(matches!(older(1, 60), Some(Choice::State(..))));
    assert!(older(1, 49).is_none());
    assert!(older(2, 60).is_none(), "offsets of another incarnation");
}

#[test]
fn a_state_is_restored_only_where_the_topic_has_lost_its_head() {
    let (none, here, elsewhere) = (
        BTreeMap::new(),
        BTreeMap::from([(PARTITION, 50)]),
        BTreeMap::from([(PARTITION + 1, 50)]),
    );
    let newest = |offsets| {
        let starts = Starts {
            incarnation: 1,
            offsets,
        };
        of_newest(key(1, 90), archived_at(90), &starts)
    };
    assert!(matches!(newest(&here), Choice::State(..)));
    for offsets in [&none, &elsewhere] {
        assert!(matches!(newest(offsets), Choice::Topic(..)));
        let starts = Starts {
            incarnation: 1,
            offsets,
        };
        let older = of_older(key(1, 10), archived_at(10), &starts);
        assert!(matches!(older, Some(Choice::Nothing)));
    }
}
