use wakelog_proto::v1::LifetimeStatus;

use super::*;
use crate::facts::tests::standing;

const ME: WriterNonce = WriterNonce([1; 16]);
const OTHER: WriterNonce = WriterNonce([2; 16]);

fn view(standing: &Standing) -> AckView<'_> {
    AckView {
        standing: Some(standing),
        fence_age: Duration::from_secs(1),
        max_fence_age: Duration::from_secs(30),
        generation: 3,
        nonce: Some(ME),
        bind_on_its_way: false,
    }
}

fn queue_of(seqs: std::ops::RangeInclusive<u64>, asked: Level) -> AckQueue {
    let mut queue = AckQueue::default();
    for seq in seqs {
        queue.push(seq, seq * 10, asked, 100);
    }
    queue
}

fn applied(seq: u64, next_offset: i64) -> Option<Applied> {
    Some(Applied { seq, next_offset })
}

#[test]
fn the_log_is_enough_only_with_fresh_fences_and_no_bind_on_its_way() {
    let fine = standing(0);
    assert_eq!(decide_ack(Level::Log, view(&fine)), AckDecision::Log);
    assert_eq!(decide_ack(Level::Store, view(&fine)), AckDecision::Store);
    let raised = AckView {
        bind_on_its_way: true,
        ..view(&fine)
    };
    assert_eq!(decide_ack(Level::Log, raised), AckDecision::Store);
    let stale = AckView {
        fence_age: Duration::from_secs(31),
        ..view(&fine)
    };
    assert_eq!(decide_ack(Level::Log, stale), AckDecision::FencesStale);
    assert_eq!(decide_ack(Level::Store, stale), AckDecision::Store);
    let at_the_limit = AckView {
        fence_age: Duration::from_secs(30),
        ..view(&fine)
    };
    assert_eq!(decide_ack(Level::Log, at_the_limit), AckDecision::Log);
}

#[test]
fn nothing_fenced_gets_a_log_ack() {
    let superseded = Standing {
        session_generation: 4,
        ..standing(0)
    };
    let failed = Standing {
        status: LifetimeStatus::Failed,
        ..standing(0)
    };
    let foreign = Standing {
        nonce: Some(OTHER),
        ..standing(0)
    };
    let erased = Standing {
        erased: true,
        ..standing(0)
    };
    for standing in [superseded, failed, foreign, erased] {
        assert_eq!(
            decide_ack(Level::Log, view(&standing)),
            AckDecision::Store,
            "{standing:?}"
        );
    }
    let unknown = AckView {
        standing: None,
        ..view(&standing(0))
    };
    assert_eq!(decide_ack(Level::Log, unknown), AckDecision::Store);
}

#[test]
fn acks_are_cumulative_and_in_order() {
    let mut queue = queue_of(1..=3, Level::Log);
    queue.delivered(2, 20, 11, AckDecision::Log);
    queue.delivered(3, 30, 12, AckDecision::Log);
    assert_eq!(queue.settle(None), Settled::default(), "2 and 3 wait for 1");
    queue.delivered(1, 10, 10, AckDecision::Log);
    let settled = queue.settle(None);
    assert_eq!(
        (settled.acked, settled.log_acks, settled.store_acked),
        (Some(3), 3, None)
    );
    assert!(queue.is_empty());
    assert_eq!(queue.bytes(), 0);
}

#[test]
fn an_entry_that_needs_the_store_holds_back_those_above_it() {
    let mut queue = queue_of(1..=2, Level::Log);
    queue.delivered(1, 10, 10, AckDecision::Store);
    queue.delivered(2, 20, 11, AckDecision::Log);
    assert_eq!(queue.needs_store(), Some(1));
    assert_eq!(queue.settle(applied(0, 10)), Settled::default());
    let settled = queue.settle(applied(1, 11));
    assert_eq!(settled.acked, Some(2));
    assert_eq!(settled.store_acked, Some(1));
    assert_eq!(queue.needs_store(), None);
}

#[test]
fn applied_before_its_own_record_was_folded_is_not_enough() {
    let mut queue = queue_of(1..=1, Level::Store);
    queue.delivered(1, 10, 10, AckDecision::Store);
    assert_eq!(
        queue.settle(applied(1, 10)),
        Settled::default(),
        "an earlier attempt with other bytes?"
    );
    assert_eq!(queue.settle(applied(1, 11)).store_acked, Some(1));
}

#[test]
fn applied_but_undelivered_is_not_acknowledged() {
    let mut queue = queue_of(1..=1, Level::Store);
    assert_eq!(queue.settle(applied(1, 99)), Settled::default());
    assert!(queue.is_publishing(1));
}

#[test]
fn an_entry_that_the_fold_dropped_is_reported() {
    let mut queue = queue_of(4..=5, Level::Store);
    queue.delivered(4, 40, 10, AckDecision::Store);
    queue.delivered(5, 50, 11, AckDecision::Store);
    let settled = queue.settle(applied(3, 12));
    assert_eq!((settled.acked, settled.dropped_by_fold), (None, Some(4)));
}

#[test]
fn voiding_keeps_what_is_below() {
    let mut queue = queue_of(1..=5, Level::Log);
    assert_eq!(queue.void_from(3), 3);
    assert_eq!((queue.len(), queue.bytes()), (2, 200));
    assert_eq!(queue.void_from(9), 0);
    queue.push(3, 31, Level::Log, 7);
    assert_eq!(queue.asked(3, 30), None, "the voided publication is gone");
    assert_eq!(queue.asked(3, 31), Some(Level::Log));
    queue.delivered(3, 30, 1, AckDecision::Log);
    assert!(
        queue.is_publishing(3),
        "a late report of the voided publication changes nothing"
    );
}
