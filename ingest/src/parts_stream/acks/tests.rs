use super::*;
use crate::facts::Terminal;

fn lane(acked: u64) -> LaneProgress {
    LaneProgress {
        acked,
        epoch: 2,
        ..LaneProgress::default()
    }
}

fn marks(published: u64, confirmed: u64) -> Marks {
    Marks {
        published,
        epoch: 2,
        confirmed,
        done: false,
    }
}

fn said(lane: LaneProgress, marks: Marks) -> (u64, Level, Option<AckRefusal>) {
    let say = say(&lane, &marks, Level::Log);
    (say.acked, say.level, say.refused)
}

#[test]
fn a_stream_speaks_only_of_what_it_published() {
    assert_eq!(said(lane(9), marks(0, 0)).0, 0);
    assert_eq!(said(lane(9), marks(7, 0)), (7, Level::Log, None));
    assert_eq!(said(lane(5), marks(7, 0)), (5, Level::Log, None));
}

#[test]
fn a_confirmed_repeat_is_a_store_ack() {
    assert_eq!(said(lane(0), marks(0, 4)), (4, Level::Store, None));
    assert_eq!(said(lane(6), marks(6, 4)), (6, Level::Log, None));
    let store_acked = LaneProgress {
        store_acked: 6,
        ..lane(6)
    };
    assert_eq!(said(store_acked, marks(6, 4)), (6, Level::Store, None));
}

#[test]
fn a_void_ends_the_stream_after_what_was_acknowledged_before() {
    let voided = LaneProgress {
        epoch: 3,
        acked_when_voided: 5,
        voided_from: 6,
        acked: 9,
        ..lane(0)
    };
    assert_eq!(
        said(voided, marks(7, 0)),
        (5, Level::Log, Some(AckRefusal::Voided { expected: 6 }))
    );
    assert_eq!(
        said(voided, marks(5, 0)),
        (5, Level::Log, None),
        "nothing of this stream was voided"
    );
    let twice = say(&LaneProgress { epoch: 4, ..voided }, &marks(7, 0), Level::Log);
    assert_eq!(
        (twice.acked, twice.refused),
        (0, Some(AckRefusal::Voided { expected: 6 }))
    );
}

#[test]
fn what_survived_a_bind_is_acknowledged_before_the_refusal() {
    let terminal = Terminal::Superseded { current: 9 };
    let ended = LaneProgress {
        ended_by: Some((terminal, 6)),
        ..lane(5)
    };
    assert_eq!(said(ended, marks(8, 0)), (5, Level::Log, None));
    let ended = LaneProgress { acked: 6, ..ended };
    assert_eq!(
        said(ended, marks(8, 0)),
        (6, Level::Log, Some(AckRefusal::Terminal(terminal)))
    );
}

#[test]
fn stale_fences_end_the_stream() {
    let stale = LaneProgress {
        fences_stale_at: 7,
        ..lane(5)
    };
    assert_eq!(
        said(stale, marks(7, 0)),
        (5, Level::Log, Some(AckRefusal::FencesStale))
    );
    let asked_for_store = say(&stale, &marks(7, 0), Level::Store);
    assert_eq!(
        (asked_for_store.level, asked_for_store.refused),
        (Level::Store, None)
    );
}
