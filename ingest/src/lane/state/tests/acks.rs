//! What a read of the store means for what is unacknowledged.

use super::*;

#[test]
fn a_raised_generation_turns_log_acks_into_store_acks() {
    let mut state = lane();
    let part = publish(&mut state, 1);
    let raised = Standing {
        binding_generation: 4,
        binding_raised_age: Duration::from_secs(1),
        nonce: Some(ME),
        ..standing(0)
    };
    state.observe(facts(Some(raised.clone()), 10));
    state.delivered(part, Some(10), Instant::now());
    assert_eq!(outcome(&state, 1, 0), AckOutcome::Pending);
    assert_eq!(state.needs_store(), Some(1));
    state.observe(facts(
        Some(Standing {
            applied_seq: 1,
            ..raised
        }),
        11,
    ));
    assert_eq!(outcome(&state, 1, 0), AckOutcome::Acked(Level::Store));
}

/// Invariant one-writer: the store may have lost the bind that fences this lifetime, and the log has it.
#[test]
fn a_store_that_went_back_gives_no_log_acks() {
    let mut state = lane();
    let part = publish(&mut state, 1);
    let standing = |applied_seq| Standing {
        nonce: Some(ME),
        ..standing(applied_seq)
    };
    state.observe(Facts {
        may_lack_binds: true,
        ..facts(Some(standing(0)), 10)
    });
    state.delivered(part, Some(10), Instant::now());
    assert_eq!(outcome(&state, 1, 0), AckOutcome::Pending);
    state.observe(facts(Some(standing(1)), 11));
    assert_eq!(outcome(&state, 1, 0), AckOutcome::Acked(Level::Store));
    let part = publish(&mut state, 2);
    state.delivered(part, Some(11), Instant::now());
    assert_eq!(outcome(&state, 2, 0), log_acked(), "it has caught up");
}

/// Invariant one-writer: that another run of the server answers is known before this lifetime is read again.
#[test]
fn what_was_read_of_the_run_before_gives_no_log_acks() {
    let mut state = lane();
    let read_at = state.read_at().expect("it was read");
    let parts: Vec<_> = (1..=2).map(|seq| publish(&mut state, seq)).collect();
    state.server_changed_at = Some(read_at);
    state.delivered(parts[0], Some(10), Instant::now());
    assert_eq!(outcome(&state, 1, 0), AckOutcome::Pending);
    let known = Standing {
        nonce: Some(ME),
        applied_seq: 1,
        ..standing(1)
    };
    state.observe(Facts {
        read_at: read_at + Duration::from_millis(1),
        ..facts(Some(known), 11)
    });
    state.delivered(parts[1], Some(11), Instant::now());
    assert_eq!(outcome(&state, 2, 0), log_acked());
}

#[test]
fn a_bind_that_came_first_refuses_what_it_fenced() {
    let mut state = lane();
    let parts: Vec<_> = (1..=2)
        .map(|seq| {
            publish_as(
                &mut state,
                PartOrder {
                    asked: Level::Store,
                    ..order(seq, 0, true)
                },
            )
            .unwrap()
        })
        .collect();
    state.delivered(parts[0], Some(10), Instant::now());
    state.delivered(parts[1], Some(12), Instant::now());
    let superseded = Standing {
        session_generation: 4,
        nonce: Some(ME),
        ..standing(1)
    };
    state.observe(facts(Some(superseded), 12));
    let progress = state.progress();
    assert_eq!(
        progress.outcome(1, 0, Level::Store),
        AckOutcome::Acked(Level::Store)
    );
    let terminal = Terminal::Superseded { current: 4 };
    assert_eq!(
        progress.outcome(2, 0, Level::Store),
        AckOutcome::Refused(AckRefusal::Terminal(terminal))
    );
    assert_eq!(
        state.admit(request(2), Certainty::Cached),
        Decision::Refuse(Refusal::Terminal(terminal))
    );
    assert!(state.is_idle());
}

#[test]
fn a_failed_lifetime_or_a_second_writer_gets_no_ack_at_all() {
    for broken in [
        Standing {
            status: LifetimeStatus::Failed,
            nonce: Some(ME),
            ..standing(1)
        },
        Standing {
            nonce: Some(OTHER),
            ..standing(1)
        },
    ] {
        let mut state = lane();
        let part = publish_as(
            &mut state,
            PartOrder {
                asked: Level::Store,
                ..order(1, 0, true)
            },
        )
        .unwrap();
        state.delivered(part, Some(10), Instant::now());
        state.observe(facts(Some(broken), 11));
        assert!(matches!(
            state.progress().outcome(1, 0, Level::Store),
            AckOutcome::Refused(AckRefusal::Terminal(Terminal::Failed | Terminal::SecondWriter))
        ));
    }
}

#[test]
fn stale_fences_deny_the_log_ack_until_the_store_has_the_entry() {
    let mut state = lane();
    let part = publish(&mut state, 1);
    state.delivered(part, Some(10), Instant::now() + Duration::from_secs(31));
    assert_eq!(
        outcome(&state, 1, 0),
        AckOutcome::Refused(AckRefusal::FencesStale)
    );
    state.observe(facts(
        Some(Standing {
            nonce: Some(ME),
            ..standing(1)
        }),
        11,
    ));
    assert_eq!(outcome(&state, 1, 0), AckOutcome::Acked(Level::Store));
}

#[test]
fn an_entry_that_the_fold_dropped_is_voided() {
    let mut state = lane();
    let part = publish_as(
        &mut state,
        PartOrder {
            asked: Level::Store,
            ..order(1, 0, true)
        },
    )
    .unwrap();
    state.delivered(part, Some(10), Instant::now());
    state.observe(facts(Some(standing(0)), 11));
    assert_eq!(
        outcome(&state, 1, 0),
        AckOutcome::Refused(AckRefusal::Voided { expected: 1 })
    );
    assert!(publish_as(&mut state, order(1, 0, true)).is_ok());
}

#[test]
fn a_denied_log_ack_is_not_held_against_a_later_publication() {
    let mut state = lane();
    let part = publish(&mut state, 1);
    state.delivered(part, Some(10), Instant::now() + Duration::from_secs(31));
    state.reset_to(0);
    let again = publish(&mut state, 1);
    assert_eq!(outcome(&state, 1, 1), AckOutcome::Pending);
    state.delivered(again, Some(11), Instant::now());
    assert_eq!(outcome(&state, 1, 1), log_acked());
}
