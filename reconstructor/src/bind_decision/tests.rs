use super::*;

const STATUSES: [LifetimeStatus; 3] = [
    LifetimeStatus::Active,
    LifetimeStatus::Ended,
    LifetimeStatus::Failed,
];

fn known(generation: u64, current_generation: u64, status: LifetimeStatus) -> Known {
    Known {
        generation,
        current_generation,
        status,
    }
}

fn session(generation: u64, last_entry_seq: u64) -> SessionNow {
    SessionNow {
        generation,
        last_entry_seq,
    }
}

#[test]
fn a_request_that_has_bound_and_is_current_is_used_again_wherever_it_wanted_to_bind() {
    let found = known(3, 3, LifetimeStatus::Active);
    for place in [
        Place::OverCurrent,
        Place::First,
        Place::After { named: Some(2) },
        Place::After { named: None },
    ] {
        assert_eq!(
            decide(Some(&found), session(3, 9), place, true),
            Decision::Reuse,
            "{place:?}"
        );
    }
}

#[test]
fn a_request_whose_lifetime_is_gone_is_refused_and_never_binds_again() {
    let cases = [
        (
            known(2, 3, LifetimeStatus::Active),
            BindRefusal::Superseded { current: 3 },
        ),
        (known(3, 3, LifetimeStatus::Ended), BindRefusal::Ended),
        (known(3, 3, LifetimeStatus::Failed), BindRefusal::Failed),
        (known(3, 3, LifetimeStatus::Unspecified), BindRefusal::Failed),
    ];
    for (found, refusal) in cases {
        for place in [Place::OverCurrent, Place::First, Place::After { named: Some(3) }] {
            assert_eq!(
                decide(Some(&found), session(3, 9), place, true),
                Decision::Refuse(refusal),
                "{found:?}"
            );
        }
    }
}

#[test]
fn superseded_outranks_the_status_that_the_lifetime_had() {
    for status in STATUSES {
        assert_eq!(
            standing(&known(1, 4, status)),
            Standing::Superseded { current: 4 }
        );
    }
}

#[test]
fn a_bind_over_the_current_generation_takes_the_next_one() {
    for generation in 0..5 {
        assert_eq!(
            decide(None, session(generation, 1), Place::OverCurrent, true),
            Decision::Bind {
                generation: generation + 1
            }
        );
    }
}

#[test]
fn a_resume_of_an_empty_session_is_refused_before_it_binds() {
    assert_eq!(
        decide(None, session(1, 0), Place::OverCurrent, true),
        Decision::Refuse(BindRefusal::Empty)
    );
    assert_eq!(
        decide(None, session(1, 0), Place::OverCurrent, false),
        Decision::Bind { generation: 2 }
    );
}

#[test]
fn a_writer_that_knows_no_lifetime_binds_a_new_session_only() {
    assert_eq!(
        decide(None, session(0, 0), Place::First, false),
        Decision::Bind { generation: 1 }
    );
    assert_eq!(
        decide(None, session(2, 7), Place::First, false),
        Decision::Refuse(BindRefusal::Superseded { current: 2 })
    );
}

#[test]
fn a_writer_follows_the_lifetime_that_it_knows_only_while_that_one_is_current() {
    assert_eq!(
        decide(None, session(2, 7), Place::After { named: Some(2) }, false),
        Decision::Bind { generation: 3 }
    );
    for named in [Some(1), Some(3), None] {
        assert_eq!(
            decide(None, session(2, 7), Place::After { named }, false),
            Decision::Refuse(BindRefusal::Superseded { current: 2 }),
            "{named:?}"
        );
    }
}

#[test]
fn an_unknown_lifetime_does_not_pass_for_the_generation_before_the_first() {
    assert_eq!(
        decide(None, session(0, 0), Place::After { named: None }, false),
        Decision::Refuse(BindRefusal::Superseded { current: 0 })
    );
}

#[test]
fn a_published_bind_is_open_until_its_generation_is_reached() {
    assert_eq!(verdict(None, 2, 3), Verdict::Open);
    assert_eq!(verdict(None, 0, 1), Verdict::Open);
}

#[test]
fn a_published_bind_is_lost_when_its_generation_is_another_lifetime() {
    assert_eq!(verdict(None, 3, 3), Verdict::Lost { current: 3 });
    assert_eq!(verdict(None, 8, 3), Verdict::Lost { current: 8 });
}

#[test]
fn a_published_bind_that_is_applied_has_won_unless_it_is_of_no_use_any_more() {
    // The session row may have been read before the bind was applied: the lifetime's own row decides.
    assert_eq!(
        verdict(Some(&known(3, 3, LifetimeStatus::Active)), 2, 3),
        Verdict::Won
    );
    assert_eq!(
        verdict(Some(&known(3, 4, LifetimeStatus::Active)), 4, 3),
        Verdict::Refuse(BindRefusal::Superseded { current: 4 })
    );
    assert_eq!(
        verdict(Some(&known(3, 3, LifetimeStatus::Ended)), 3, 3),
        Verdict::Refuse(BindRefusal::Ended)
    );
    assert_eq!(
        verdict(Some(&known(3, 3, LifetimeStatus::Failed)), 3, 3),
        Verdict::Refuse(BindRefusal::Failed)
    );
}

/// Racing resumes of one session, in every order of their records: exactly one wins, the others have lost.
#[test]
fn of_racing_binds_of_one_generation_exactly_one_wins() {
    let racers = 4_u64;
    for winner in 0..racers {
        let mut won = 0;
        for racer in 0..racers {
            let applied = (racer == winner).then(|| known(1, 1, LifetimeStatus::Active));
            match verdict(applied.as_ref(), 1, 1) {
                Verdict::Won => won += 1,
                Verdict::Lost { current } => assert_eq!(current, 1),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(won, 1);
    }
}
