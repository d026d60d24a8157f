//! exactly-once-fold: the same log gives the same outcomes, states and rows, wherever folding starts again.

use proptest::prelude::*;
use wakelog_fold::{Outcome, SessionState, fold};

use crate::properties::config;
use crate::records::session;
use crate::world::{Logged, Store, World, plan};

/// Folds `log` onto `state` and `store`, going through the stored form before every record if `restless`.
fn refold(state: &mut SessionState, store: &mut Store, log: &[Logged], restless: bool) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for Logged { record, context } in log {
        if restless {
            *state = SessionState::decode(&state.encode()).unwrap();
        }
        let outcome = fold(state, session(), record, context);
        store.take(record, &outcome);
        outcomes.push(outcome);
    }
    outcomes
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn exactly_once_fold_a_replay_from_the_start_gives_the_same(plan in plan(80), restless: bool) {
        let world = World::run(&plan);
        let (mut state, mut store) = (SessionState::default(), Store::default());
        let outcomes = refold(&mut state, &mut store, &world.log, restless);
        prop_assert_eq!(outcomes, world.outcomes);
        prop_assert_eq!(state.encode(), world.state.encode());
        prop_assert_eq!(state.digest(), world.state.digest());
        prop_assert_eq!(store, world.store);
    }

    #[test]
    fn exactly_once_fold_a_replay_from_any_stored_state_gives_the_same(plan in plan(80)) {
        let world = World::run(&plan);
        for (folded, bytes) in &world.stored {
            let (mut before, mut store) = (SessionState::default(), Store::default());
            refold(&mut before, &mut store, &world.log[..*folded], false);
            prop_assert_eq!(&before.encode(), bytes);
            let mut state = SessionState::decode(bytes).unwrap();
            let outcomes = refold(&mut state, &mut store, &world.log[*folded..], false);
            prop_assert_eq!(&outcomes, &world.outcomes[*folded..]);
            prop_assert_eq!(state.encode(), world.state.encode());
            prop_assert_eq!(&store, &world.store);
        }
    }

    /// A batch that is folded on copies and then not committed leaves nothing behind.
    #[test]
    fn exactly_once_fold_a_batch_that_was_not_committed_leaves_nothing(plan in plan(60), batch in 1_usize..20) {
        let world = World::run(&plan);
        let (mut state, mut store) = (SessionState::default(), Store::default());
        for records in world.log.chunks(batch) {
            refold(&mut state.clone(), &mut store.clone(), records, false);
            refold(&mut state, &mut store, records, false);
        }
        prop_assert_eq!(state.encode(), world.state.encode());
        prop_assert_eq!(store, world.store);
    }
}
