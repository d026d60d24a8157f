use super::*;

fn progress() -> LaneProgress {
    LaneProgress {
        acked: 5,
        store_acked: 3,
        epoch: 2,
        ..LaneProgress::default()
    }
}

fn refused(refusal: AckRefusal) -> AckOutcome {
    AckOutcome::Refused(refusal)
}

#[test]
fn acks_are_cumulative_and_name_what_they_stand_on() {
    assert_eq!(
        progress().outcome(5, 2, Level::Log),
        AckOutcome::Acked(Level::Log)
    );
    assert_eq!(
        progress().outcome(3, 2, Level::Log),
        AckOutcome::Acked(Level::Store)
    );
    assert_eq!(
        progress().outcome(4, 2, Level::Store),
        AckOutcome::Acked(Level::Store)
    );
    assert_eq!(progress().outcome(6, 2, Level::Log), AckOutcome::Pending);
}

#[test]
fn an_earlier_epoch_is_void_but_for_what_was_acknowledged_in_it() {
    let voided = LaneProgress {
        epoch: 3,
        voided_from: 6,
        acked_when_voided: 5,
        acked: 9,
        ..progress()
    };
    assert_eq!(voided.outcome(5, 2, Level::Log), AckOutcome::Acked(Level::Log));
    assert_eq!(
        voided.outcome(7, 2, Level::Log),
        refused(AckRefusal::Voided { expected: 6 })
    );
    assert_eq!(
        voided.outcome(5, 1, Level::Log),
        refused(AckRefusal::Voided { expected: 5 })
    );
    assert_eq!(voided.outcome(9, 3, Level::Log), AckOutcome::Acked(Level::Log));
}

#[test]
fn what_ended_the_writer_refuses_what_did_not_survive() {
    let terminal = Terminal::Superseded { current: 4 };
    let ended = LaneProgress {
        ended_by: Some((terminal, 7)),
        ..progress()
    };
    assert_eq!(ended.outcome(5, 2, Level::Log), AckOutcome::Acked(Level::Log));
    assert_eq!(ended.outcome(7, 2, Level::Store), AckOutcome::Pending);
    assert_eq!(
        ended.outcome(8, 2, Level::Store),
        refused(AckRefusal::Terminal(terminal))
    );
}

#[test]
fn stale_fences_deny_log_acks_only() {
    let stale = LaneProgress {
        fences_stale_at: 7,
        ..progress()
    };
    assert_eq!(stale.outcome(7, 2, Level::Log), refused(AckRefusal::FencesStale));
    assert_eq!(stale.outcome(7, 2, Level::Store), AckOutcome::Pending);
    assert_eq!(stale.outcome(8, 2, Level::Log), AckOutcome::Pending);
}
