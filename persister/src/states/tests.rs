use wakelog_fold::{Change, Outcome};

use super::{Known, States};
use crate::testing::{PARTITION, entry, erased, opened, opened_on, session};

fn opened_states(parents: &[(u8, Option<u8>)]) -> States {
    let mut states = States::new(PARTITION);
    for (child, parent) in parents {
        let outcome = states.fold(session(*child), &opened(parent.map(session)));
        assert_eq!(outcome, Outcome::Applied(Change::SessionOpened));
    }
    states
}

#[test]
fn an_erased_session_is_above_all_that_descend_from_it() {
    let mut states = opened_states(&[(1, None), (2, Some(1)), (3, Some(2)), (9, None)]);
    assert!(states.is_below(session(3), session(1)) && states.is_below(session(2), session(1)));
    assert!(!states.is_below(session(1), session(1)) && !states.is_below(session(9), session(1)));
    assert!(!states.is_gone(session(3)));
    states.fold(session(1), &erased());
    for (n, gone) in [(1, true), (2, true), (3, true), (9, false)] {
        assert_eq!(states.is_gone(session(n)), gone, "session {n}");
    }
    assert!(!states.is_root_erased(session(1)));
    assert_eq!(
        states.fold(session(3), &entry(session(3), 1, 1, b'a')),
        Outcome::ErasedSession
    );
    assert_eq!(
        states.fold(session(4), &opened(Some(session(3)))),
        Outcome::ErasedSession
    );
}

#[test]
fn a_circle_of_parents_ends() {
    let mut states = opened_states(&[(1, Some(2)), (2, Some(1))]);
    assert!(!states.is_gone(session(1)));
    assert!(!states.is_below(session(1), session(9)));
    states.fold(session(2), &erased());
    assert!(states.is_gone(session(1)));
}

#[test]
fn parents_that_were_not_loaded_are_named_once() {
    let mut states = opened_states(&[(3, Some(1)), (4, Some(1)), (5, Some(2)), (6, Some(5))]);
    assert_eq!(states.missing_parents(), [session(1), session(2)]);
    states.insert(session(1), Known::default());
    assert_eq!(states.missing_parents(), [session(2)]);
}

#[test]
fn a_flag_that_was_loaded_counts_without_the_parents() {
    let mut states = opened_states(&[(3, Some(1))]);
    let state = states.get(session(3)).unwrap().clone();
    states.insert(
        session(3),
        Known {
            state,
            root_erased: true,
        },
    );
    assert!(states.is_root_erased(session(3)));
}

#[test]
fn only_this_partitions_sessions_are_remembered_or_asked() {
    let mut elsewhere = States::new(PARTITION + 1);
    elsewhere.fold(session(1), &opened_on(PARTITION + 1, None));
    elsewhere.fold(session(1), &erased());
    let mut states = States::new(PARTITION);
    for (session, known) in elsewhere.into_own() {
        states.insert(session, known);
    }
    states.fold(session(2), &opened(Some(session(1))));
    assert!(
        states.get(session(2)).unwrap().is_known(),
        "the order of two partitions is nobody's"
    );
    states.insert(session(8), Known::default());
    let own: Vec<_> = states.into_own().map(|(session, _)| session).collect();
    assert_eq!(own, [session(2)]);
}
