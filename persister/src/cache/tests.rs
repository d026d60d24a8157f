use super::SessionCache;
use crate::states::States;
use crate::testing::{PARTITION, opened, session};

fn states(sessions: impl IntoIterator<Item = u8>) -> States {
    let mut states = States::new(PARTITION);
    for n in sessions {
        states.fold(session(n), &opened(None));
    }
    states
}

#[test]
fn what_was_committed_is_copied_and_clearing_forgets_it() {
    let mut cache = SessionCache::new(10);
    cache.absorb(states(1..=3));
    assert!(cache.copy(session(2)).unwrap().state.is_known());
    assert!(cache.copy(session(4)).is_none());
    cache.clear();
    assert_eq!(cache.len(), 0);
}

#[test]
fn the_sessions_of_the_last_batches_stay() {
    let mut cache = SessionCache::new(8);
    for n in 1..=8 {
        cache.absorb(states([n]));
    }
    cache.absorb(states([1]));
    assert_eq!(cache.len(), 8);
    cache.absorb(states([9]));
    assert_eq!(cache.len(), 6);
    for (n, stays) in [
        (1, true),
        (9, true),
        (8, true),
        (2, false),
        (3, false),
        (4, false),
    ] {
        assert_eq!(cache.copy(session(n)).is_some(), stays, "session {n}");
    }
}

#[test]
fn a_batch_that_is_larger_than_the_cache_does_not_stay() {
    let mut cache = SessionCache::new(4);
    cache.absorb(states(1..=9));
    assert!(cache.len() <= 4);
    let mut nothing = SessionCache::new(0);
    nothing.absorb(states(1..=2));
    assert_eq!(nothing.len(), 0);
}
