//! What the store and the state must show, given what was applied and acknowledged.

use wakelog_fold::SessionState;
use wakelog_proto::v1::LifetimeStatus;

use super::{Complete, Oracle};
use crate::world::Store;

impl Oracle {
    /// Byte-exact: the store holds this entry as its writer meant it, each part once and in order.
    pub(super) fn check_entry(&self, entry_seq: usize, store: &Store) {
        let complete = &self.entries[entry_seq - 1];
        let rows: Vec<_> = store.entry(entry_seq as u64).collect();
        let bodies: Vec<_> = rows.iter().map(|(_, row)| row.body.to_vec()).collect();
        assert_eq!(bodies, complete.entry.bodies, "entry {entry_seq}");
        for (number, ((_, part), row)) in rows.iter().enumerate() {
            assert_eq!(*part as usize, number);
            assert_eq!(row.last, number + 1 == rows.len());
            assert_eq!(row.checkpoint, complete.entry.checkpoint);
            assert_eq!(
                (row.generation, row.nonce[0]),
                (complete.generation, complete.nonce)
            );
        }
    }

    /// Resume is current: the body that a bind fixes holds all that was applied before, from the last checkpoint on.
    pub(super) fn check_resume_body(&self, state: &SessionState, store: &Store) {
        let mut body = Vec::new();
        for Complete { entry, .. } in &self.entries {
            if entry.checkpoint {
                body.clear();
            }
            body.extend(entry.bodies.concat());
        }
        let lifetime = state.lifetime().expect("just bound");
        assert_eq!(lifetime.base(), self.entries.len() as u64);
        assert_eq!(store.body(lifetime.body_start(), lifetime.base()), body);
        assert_eq!(
            (lifetime.nonce(), lifetime.last_seq(), lifetime.open_parts()),
            (None, 0, 0)
        );
    }

    pub(super) fn check_accessors(&self, state: &SessionState) {
        assert_eq!(
            (state.is_known(), state.is_erased()),
            (self.opened.is_some(), self.erased)
        );
        assert_eq!(
            state.access().keys().map(String::as_str).collect::<Vec<_>>(),
            Vec::from_iter(self.access.clone())
        );
        assert_eq!(state.last_entry_seq(), self.entries.len() as u64);
        let checkpoint = self
            .entries
            .iter()
            .rposition(|complete| complete.entry.checkpoint);
        assert_eq!(
            state.last_checkpoint_seq(),
            checkpoint.map_or(0, |index| index as u64 + 1)
        );
        assert_eq!(state.generation(), self.generation());
        let Some(lifetime) = state.lifetime() else {
            return assert!(self.lifetimes.is_empty());
        };
        let expected = self.lifetimes.last().expect("a lifetime that was bound");
        assert_eq!(lifetime.id().as_bytes(), expected.bound.lifetime_id.as_ref());
        assert_eq!(lifetime.base(), expected.base as u64);
        assert_eq!(lifetime.nonce().map(|nonce| nonce.0[0]), expected.nonce);
        assert_eq!(lifetime.last_seq(), expected.complete);
        assert_eq!(lifetime.open_parts() as usize, expected.open_parts);
        let status = match (expected.failed, expected.ended) {
            (true, _) => LifetimeStatus::Failed,
            (false, true) => LifetimeStatus::Ended,
            (false, false) => LifetimeStatus::Active,
        };
        assert_eq!(lifetime.status(), status);
    }

    /// All of the store against all that was applied and acknowledged.
    pub(crate) fn check_all(&self, state: &SessionState, store: &Store) {
        self.check_accessors(state);
        if self.erased {
            return assert!(store.rows().is_empty(), "an erased session has rows");
        }
        let mut row_count = self.lifetimes.last().map_or(0, |lifetime| lifetime.open_parts);
        for entry_seq in 1..=self.entries.len() {
            self.check_entry(entry_seq, store);
            row_count += self.entries[entry_seq - 1].entry.bodies.len();
        }
        assert_eq!(
            store.rows().len(),
            row_count,
            "the store has rows that nobody wrote"
        );
        self.check_lifetimes();
        for (entry_seq, entry) in &self.acknowledged {
            assert_eq!(
                self.entries[entry_seq - 1].entry,
                *entry,
                "an acknowledged entry was altered"
            );
        }
    }

    /// The entries of the session are those of its lifetimes one after the other, each in order, each of one writer.
    fn check_lifetimes(&self) {
        let mut applied = self.entries.iter();
        for (index, lifetime) in self.lifetimes.iter().enumerate() {
            for seq in 1..=lifetime.complete {
                let complete = applied.next().expect("an entry that was applied");
                assert_eq!((complete.generation, complete.seq), (index as u64 + 1, seq));
                assert_eq!(Some(complete.nonce), lifetime.nonce);
            }
        }
        assert!(applied.next().is_none());
    }
}
