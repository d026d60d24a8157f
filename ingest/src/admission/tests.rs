use super::*;
use crate::facts::tests::standing;

const ME: WriterNonce = WriterNonce([1; 16]);
const OTHER: WriterNonce = WriterNonce([2; 16]);

fn lane(published: u64) -> LaneView {
    LaneView {
        published,
        nonce: Some(ME),
        unacknowledged: false,
    }
}

fn entry(seq: u64) -> EntryRequest {
    EntryRequest {
        generation: 3,
        nonce: ME,
        seq,
    }
}

fn cached(lane: LaneView, standing: Standing, seq: u64) -> Decision {
    decide(lane, Some(&standing), entry(seq), Certainty::Cached)
}

fn sure(lane: LaneView, standing: Standing, seq: u64) -> Decision {
    decide(lane, Some(&standing), entry(seq), Certainty::AfterBarrier)
}

fn refused(terminal: Terminal) -> Decision {
    Decision::Refuse(Refusal::Terminal(terminal))
}

#[test]
fn the_next_entry_is_admitted_from_the_cache() {
    assert_eq!(cached(lane(7), standing(5), 8), Decision::Admit { published: 7 });
}

#[test]
fn a_fresh_lane_starts_at_what_is_applied() {
    let fresh = LaneView {
        published: 0,
        nonce: None,
        unacknowledged: false,
    };
    assert_eq!(cached(fresh, standing(5), 6), Decision::Admit { published: 5 });
    assert_eq!(cached(fresh, standing(5), 5), Decision::Repeat);
    assert_eq!(cached(fresh, standing(5), 7), Decision::AskStore);
}

#[test]
fn what_another_relay_got_applied_moves_the_cache_up() {
    assert_eq!(cached(lane(2), standing(9), 10), Decision::Admit { published: 9 });
    assert_eq!(cached(lane(2), standing(9), 9), Decision::Repeat);
}

#[test]
fn everything_up_to_the_cache_is_a_repeat() {
    for seq in 1..=7 {
        assert_eq!(cached(lane(7), standing(5), seq), Decision::Repeat);
        assert_eq!(sure(lane(7), standing(5), seq), Decision::Repeat);
    }
}

#[test]
fn a_gap_is_refused_only_after_the_barrier_and_names_what_the_store_expects() {
    assert_eq!(cached(lane(7), standing(5), 9), Decision::AskStore);
    assert_eq!(
        sure(lane(7), standing(5), 9),
        Decision::Refuse(Refusal::Gap { expected: 6 })
    );
    assert_eq!(sure(lane(7), standing(8), 9), Decision::Admit { published: 8 });
}

#[test]
fn facts_refuse_at_once_new_entries_and_repeats_alike() {
    let superseded = Standing {
        session_generation: 4,
        ..standing(5)
    };
    let failed = Standing {
        status: LifetimeStatus::Failed,
        ..standing(5)
    };
    let foreign = Standing {
        nonce: Some(OTHER),
        ..standing(5)
    };
    let erased = Standing {
        erased: true,
        ..standing(5)
    };
    for seq in [1, 6, 20] {
        assert_eq!(
            cached(lane(5), superseded.clone(), seq),
            refused(Terminal::Superseded { current: 4 })
        );
        assert_eq!(cached(lane(5), failed.clone(), seq), refused(Terminal::Failed));
        assert_eq!(
            cached(lane(5), foreign.clone(), seq),
            refused(Terminal::SecondWriter)
        );
        assert_eq!(cached(lane(5), erased.clone(), seq), refused(Terminal::NotFound));
    }
}

#[test]
fn an_ended_lifetime_still_answers_repeats() {
    let ended = Standing {
        status: LifetimeStatus::Ended,
        ..standing(5)
    };
    assert_eq!(cached(lane(7), ended.clone(), 5), Decision::Repeat);
    assert_eq!(cached(lane(7), ended.clone(), 7), Decision::Repeat);
    assert_eq!(
        cached(lane(7), ended.clone(), 8),
        Decision::Refuse(Refusal::Ended)
    );
    assert_eq!(cached(lane(7), ended, 30), Decision::Refuse(Refusal::Ended));
}

#[test]
fn an_unknown_lifetime_is_refused_only_after_the_barrier() {
    assert_eq!(
        decide(lane(0), None, entry(1), Certainty::Cached),
        Decision::AskStore
    );
    assert_eq!(
        decide(lane(0), None, entry(1), Certainty::AfterBarrier),
        refused(Terminal::NotFound)
    );
}

#[test]
fn a_store_that_is_behind_the_token_never_refuses() {
    let behind = Standing {
        session_generation: 2,
        ..standing(0)
    };
    assert_eq!(cached(lane(0), behind.clone(), 1), Decision::AskStore);
    assert_eq!(sure(lane(0), behind, 1), Decision::TryLater);
}

#[test]
fn while_another_writer_publishes_here_the_store_decides() {
    let taken = LaneView {
        published: 4,
        nonce: Some(OTHER),
        unacknowledged: true,
    };
    assert_eq!(cached(taken, standing(0), 1), Decision::AskStore);
    assert_eq!(sure(taken, standing(0), 1), Decision::TryLater);
    let idle = LaneView {
        unacknowledged: false,
        ..taken
    };
    assert_eq!(cached(idle, standing(0), 1), Decision::AskStore);
    assert_eq!(sure(idle, standing(0), 1), Decision::Admit { published: 0 });
    assert_eq!(
        sure(idle, standing(0), 2),
        Decision::Refuse(Refusal::Gap { expected: 1 })
    );
}

#[test]
fn the_writer_that_the_store_chose_takes_the_lane_back() {
    let taken = LaneView {
        published: 4,
        nonce: Some(OTHER),
        unacknowledged: true,
    };
    let mine = Standing {
        nonce: Some(ME),
        ..standing(2)
    };
    assert_eq!(cached(taken, mine.clone(), 3), Decision::Admit { published: 2 });
    assert_eq!(cached(taken, mine.clone(), 2), Decision::Repeat);
    assert_eq!(cached(taken, mine, 5), Decision::AskStore);
}

#[test]
fn the_largest_seq_does_not_overflow() {
    assert_eq!(cached(lane(3), standing(3), u64::MAX), Decision::AskStore);
    assert_eq!(cached(lane(u64::MAX), standing(3), u64::MAX), Decision::Repeat);
}
