//! Which records a state of the archive holds already (exactly-once-fold). Pure but for asking.

use std::collections::{BTreeSet, HashMap, HashSet};

use wakelog_model::SessionId;
use wakelog_store::Store;

use crate::Error;
use crate::decode::Decoded;

/// What is known of a partition's restored sessions.
pub(super) struct Skip {
    incarnation: u32,
    /// No state holds a record from here on.
    highest_state_offset: i64,
}

impl Skip {
    pub(super) async fn of(store: &Store, partition: i32, incarnation: u32) -> Result<Self, Error> {
        let highest = store.highest_state_offset(partition, incarnation).await?;
        Ok(Self {
            incarnation,
            highest_state_offset: i64::try_from(highest).unwrap_or(i64::MAX),
        })
    }

    /// Drops the records that are not to be folded; returns how many those were.
    pub(super) async fn drop_from(&self, store: &Store, records: &mut Vec<Decoded>) -> Result<u64, Error> {
        let sessions: Vec<SessionId> = records
            .iter()
            .filter_map(|record| record.session)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let erased = store.restored_as_erased(&sessions).await?;
        let is_old = records
            .first()
            .is_some_and(|first| first.offset < self.highest_state_offset);
        let offsets = match is_old {
            true => store.state_offsets(&sessions, self.incarnation).await?,
            false => HashMap::new(),
        };
        let before = records.len();
        records.retain(|record| !is_skipped(record, &erased, &offsets));
        Ok((before - records.len()) as u64)
    }
}

/// An erasure is final, so whatever the topic still has of the session is not kept. A session without a state needs all of its
/// records.
fn is_skipped(
    record: &Decoded,
    erased: &HashSet<SessionId>,
    state_offsets: &HashMap<SessionId, u64>,
) -> bool {
    let Some(session) = record.session else {
        return false;
    };
    let state_offset = state_offsets.get(&session).copied().unwrap_or(0);
    erased.contains(&session) || record.offset.unsigned_abs() < state_offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode;
    use crate::testing::{log_record, opened, session};

    #[test]
    fn exactly_once_fold_skips_what_a_state_holds_and_nothing_else() {
        let record = |offset, number| decode(&log_record(offset, session(number), &opened(None)));
        let erased = HashSet::from([session(3)]);
        let offsets = HashMap::from([(session(1), 10)]);
        let skipped = |record: &Decoded| is_skipped(record, &erased, &offsets);
        assert!(skipped(&record(9, 1)));
        assert!(!skipped(&record(10, 1)));
        assert!(!skipped(&record(0, 2)));
        assert!(skipped(&record(99, 3)));
        let mut unreadable = record(0, 1);
        unreadable.session = None;
        assert!(!skipped(&unreadable));
    }
}
