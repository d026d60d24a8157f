//! Which states of a session are not to go, recorded or not. Pure.

use std::collections::BTreeSet;

/// A state by incarnation and offset.
pub(super) type StateId = (u32, u64);

/// The states that are recorded, and the newest of those that are there: it may be about to be recorded, or what a rebuild needs.
pub(super) fn kept_states(recorded: &[StateId], there: &[StateId]) -> BTreeSet<StateId> {
    recorded.iter().chain(there.iter().max()).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_states_and_the_newest_one_are_kept() {
        let there = [(1, 10), (1, 20), (1, 30), (2, 5)];
        let kept = |recorded: &[StateId]| kept_states(recorded, &there).into_iter().collect::<Vec<_>>();
        // A topic that was made anew counts from 0 again: its states are newer all the same.
        assert_eq!(kept(&[]), [(2, 5)]);
        assert_eq!(kept(&[(1, 10)]), [(1, 10), (2, 5)]);
        assert_eq!(kept(&[(2, 5), (1, 30)]), [(1, 30), (2, 5)]);
        assert!(kept_states(&[], &[]).is_empty());
    }
}
