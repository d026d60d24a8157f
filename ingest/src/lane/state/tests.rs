use wakelog_proto::v1::LifetimeStatus;

use super::*;
use crate::admission::Refusal;
use crate::facts::tests::{facts, standing};
use crate::lane::{AckOutcome, AckRefusal};

mod acks;

const ME: WriterNonce = WriterNonce([1; 16]);
const OTHER: WriterNonce = WriterNonce([2; 16]);
const WINDOW: u64 = 1_000;

fn lane() -> LaneState {
    let limits = LaneLimits {
        max_unacked_bytes: WINDOW,
        max_fence_age: Duration::from_secs(30),
        bind_message_timeout: Duration::from_secs(5),
    };
    let mut state = LaneState::new(3, limits);
    state.observe(facts(Some(standing(0)), 0));
    state
}

fn request(seq: u64) -> EntryRequest {
    EntryRequest {
        generation: 3,
        nonce: ME,
        seq,
    }
}

fn order(seq: u64, part: u32, last: bool) -> PartOrder {
    PartOrder {
        owner: 1,
        request: request(seq),
        part,
        last,
        bytes: 10,
        asked: Level::Log,
        epoch: 0,
    }
}

fn publish_as(state: &mut LaneState, order: PartOrder) -> Result<Published, NotNow> {
    let publication = state.begin_part(&order)?;
    state.part_published(&order);
    Ok(Published {
        seq: order.request.seq,
        publication,
        bytes: order.bytes,
        last: order.last,
        folded_before: state.folded(),
    })
}

fn publish(state: &mut LaneState, seq: u64) -> Published {
    publish_as(state, order(seq, 0, true)).unwrap()
}

fn outcome(state: &LaneState, seq: u64, epoch: u64) -> AckOutcome {
    state.progress().outcome(seq, epoch, Level::Log)
}

fn log_acked() -> AckOutcome {
    AckOutcome::Acked(Level::Log)
}

#[test]
fn pipelined_entries_are_acknowledged_in_order() {
    let mut state = lane();
    let parts: Vec<_> = (1..=3).map(|seq| publish(&mut state, seq)).collect();
    state.delivered(parts[0], Some(10), Instant::now());
    assert_eq!(
        (outcome(&state, 1, 0), outcome(&state, 2, 0)),
        (log_acked(), AckOutcome::Pending)
    );
    state.delivered(parts[1], Some(11), Instant::now());
    state.delivered(parts[2], Some(12), Instant::now());
    assert_eq!(outcome(&state, 3, 0), log_acked());
    assert!(state.is_idle());
}

/// acked-is-durable: a delivery below what was folded before its publish comes from another log.
#[test]
fn a_delivery_below_what_was_folded_is_never_acknowledged() {
    let mut state = lane();
    state.observe(facts(Some(standing(0)), 7));
    let part = publish(&mut state, 1);
    state.delivered(part, Some(6), Instant::now());
    assert_eq!(
        outcome(&state, 1, 0),
        AckOutcome::Refused(AckRefusal::Voided { expected: 1 })
    );
    // What was folded after the publish says nothing about it.
    let part = publish(&mut state, 1);
    state.observe(facts(Some(standing(0)), 8));
    state.delivered(part, Some(7), Instant::now());
    assert_eq!(outcome(&state, 1, 1), log_acked());
}

#[test]
fn a_failed_publish_voids_it_and_everything_above_it() {
    let mut state = lane();
    let parts: Vec<_> = (1..=4).map(|seq| publish(&mut state, seq)).collect();
    state.delivered(parts[0], Some(10), Instant::now());
    state.delivered(parts[1], None, Instant::now());
    assert_eq!(outcome(&state, 1, 0), log_acked());
    for seq in 2..=4 {
        assert_eq!(
            outcome(&state, seq, 0),
            AckOutcome::Refused(AckRefusal::Voided { expected: 2 }),
            "{seq}"
        );
    }
    assert_eq!(state.progress().epoch, 1);
    assert!(matches!(
        state.admit(request(2), Certainty::Cached),
        Decision::Admit { published: 1 }
    ));
    assert_eq!(
        state.admit(request(3), Certainty::Cached),
        Decision::AskStore,
        "nothing above it"
    );

    let again = publish(&mut state, 2);
    state.delivered(parts[2], Some(12), Instant::now());
    state.delivered(parts[3], None, Instant::now());
    assert_eq!(
        state.progress().epoch,
        1,
        "reports of voided publishes change nothing"
    );
    assert_eq!(outcome(&state, 2, 1), AckOutcome::Pending);
    state.delivered(again, Some(13), Instant::now());
    assert_eq!(outcome(&state, 2, 1), log_acked());
    assert_eq!(
        outcome(&state, 2, 0),
        AckOutcome::Refused(AckRefusal::Voided { expected: 2 })
    );
}

#[test]
fn the_cache_never_falls_below_what_is_applied() {
    let mut state = lane();
    let part = publish(&mut state, 1);
    state.observe(facts(
        Some(Standing {
            nonce: Some(ME),
            ..standing(1)
        }),
        1,
    ));
    state.delivered(part, None, Instant::now());
    assert_eq!(state.admit(request(1), Certainty::Cached), Decision::Repeat);
    assert!(matches!(
        state.admit(request(2), Certainty::Cached),
        Decision::Admit { published: 1 }
    ));
}

#[test]
fn a_failed_part_of_an_unfinished_entry_displaces_it() {
    let mut state = lane();
    let first = publish_as(&mut state, order(1, 0, false)).unwrap();
    publish_as(&mut state, order(1, 1, false)).unwrap();
    state.delivered(first, None, Instant::now());
    assert_eq!(
        publish_as(&mut state, order(1, 2, true)).unwrap_err(),
        NotNow::Displaced
    );
    let anew = publish_as(&mut state, order(1, 0, true)).unwrap();
    state.delivered(anew, Some(5), Instant::now());
    assert_eq!(outcome(&state, 1, 1), log_acked());
}

#[test]
fn another_stream_of_the_writer_takes_an_unfinished_entry_over() {
    let mut state = lane();
    publish_as(&mut state, order(1, 0, false)).unwrap();
    let newer = PartOrder {
        owner: 2,
        ..order(1, 0, false)
    };
    publish_as(&mut state, newer).unwrap();
    assert_eq!(
        publish_as(&mut state, order(1, 1, true)).unwrap_err(),
        NotNow::Displaced
    );
    state.abandon(1);
    publish_as(
        &mut state,
        PartOrder {
            part: 1,
            last: true,
            ..newer
        },
    )
    .unwrap();
    assert_eq!(state.admit(request(1), Certainty::Cached), Decision::Repeat);
}

#[test]
fn an_abandoned_entry_is_admitted_again() {
    let mut state = lane();
    let part = publish_as(&mut state, order(1, 0, false)).unwrap();
    state.abandon(1);
    assert!(!state.is_idle(), "its part is still on its way");
    state.delivered(part, None, Instant::now());
    assert_eq!(state.progress().epoch, 0, "and its report is nobody's business");
    assert!(state.is_idle());
    assert!(publish_as(&mut state, order(1, 0, true)).is_ok());
}

#[test]
fn an_older_read_never_replaces_a_newer_one() {
    let mut state = lane();
    let older = facts(Some(standing(0)), 0);
    state.observe(facts(Some(standing(5)), 9));
    state.observe(older);
    assert_eq!(state.standing().unwrap().applied_seq, 5);
}

#[test]
fn what_the_store_lacks_is_admitted_again() {
    let mut state = lane();
    for seq in 1..=3 {
        publish(&mut state, seq);
    }
    state.reset_to(1);
    assert_eq!(
        outcome(&state, 3, 0),
        AckOutcome::Refused(AckRefusal::Voided { expected: 2 })
    );
    assert!(matches!(
        state.admit(request(2), Certainty::Cached),
        Decision::Admit { published: 1 }
    ));
    let epoch = state.progress().epoch;
    state.reset_to(1);
    assert_eq!(state.progress().epoch, epoch, "nothing to fall back from");
}

#[test]
fn a_newcomer_takes_an_idle_lane_after_the_barrier_and_closes_the_other_ones_streams() {
    let mut state = lane();
    state.admit(request(1), Certainty::Cached);
    let newcomer = EntryRequest {
        nonce: OTHER,
        ..request(1)
    };
    assert_eq!(state.admit(newcomer, Certainty::Cached), Decision::AskStore);
    assert!(matches!(
        state.admit(newcomer, Certainty::AfterBarrier),
        Decision::Admit { published: 0 }
    ));
    assert_eq!(state.progress().epoch, 1);
    assert_eq!(
        publish_as(&mut state, order(1, 0, true)).unwrap_err(),
        NotNow::AskAgain
    );
}

#[test]
fn the_window_is_bounded_in_entries_and_in_bytes() {
    let mut state = lane();
    assert!(state.has_room(true, WINDOW + 1), "a single larger entry is taken");
    for seq in 1..=REMEMBERED_ENTRIES as u64 {
        assert!(
            publish_as(
                &mut state,
                PartOrder {
                    bytes: 1,
                    ..order(seq, 0, true)
                }
            )
            .is_ok()
        );
    }
    assert!(!state.has_room(true, 1));
    assert!(state.has_room(false, 1));

    let mut state = lane();
    publish_as(
        &mut state,
        PartOrder {
            bytes: 900,
            ..order(1, 0, true)
        },
    )
    .unwrap();
    assert!(state.has_room(true, 100));
    assert!(!state.has_room(true, 101));
}

#[test]
fn a_larger_entry_is_bounded_by_what_is_on_its_way() {
    let mut state = lane();
    let first = publish_as(
        &mut state,
        PartOrder {
            bytes: 600,
            ..order(1, 0, false)
        },
    )
    .unwrap();
    publish_as(
        &mut state,
        PartOrder {
            bytes: 400,
            ..order(1, 1, false)
        },
    )
    .unwrap();
    assert!(!state.has_room(false, 600));
    state.delivered(first, Some(1), Instant::now());
    assert!(state.has_room(false, 600));
}

#[test]
fn the_barrier_target_is_forgotten_once_its_entry_is_admitted() {
    let mut state = lane();
    state.barrier_target = Some((ME, 1, 99));
    state.admit(request(1), Certainty::Cached);
    assert_eq!(state.barrier_target, None);
    state.barrier_target = Some((ME, 7, 99));
    state.admit(request(1), Certainty::Cached);
    assert_eq!(state.barrier_target, Some((ME, 7, 99)));
}
