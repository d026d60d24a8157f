//! A session under test. Checks with every record what must hold of all.

use wakelog_fold::{Change, Context, Lifetime, Outcome, Reason, SessionState, fold};
use wakelog_proto::v1::{LifetimeBound, LifetimeStatus};

use crate::records::{HERE, Variant, bind, opened, session};

#[derive(Clone, Default)]
pub(crate) struct Bench {
    pub(crate) state: SessionState,
}

impl Bench {
    /// An opened session without a lifetime.
    pub(crate) fn opened() -> Self {
        let mut bench = Self::default();
        assert_eq!(bench.fold(&opened()), Outcome::Applied(Change::SessionOpened));
        bench
    }

    /// An opened session and its first lifetime.
    pub(crate) fn bound() -> (Self, LifetimeBound) {
        let mut bench = Self::opened();
        let lifetime = bench.bind(1);
        (bench, lifetime)
    }

    /// Binds the next lifetime, which must not discard anything.
    pub(crate) fn bind(&mut self, generation: u64) -> LifetimeBound {
        let lifetime = bind(generation, "request");
        let outcome = self.fold(&lifetime);
        assert_eq!(
            outcome,
            Outcome::Applied(Change::LifetimeBound {
                discarded_entry_seq: None
            })
        );
        lifetime
    }

    pub(crate) fn fold(&mut self, record: &impl Variant) -> Outcome {
        self.fold_in(record, HERE)
    }

    pub(crate) fn fold_in(&mut self, record: &impl Variant, context: Context) -> Outcome {
        let before = self.state.clone();
        let outcome = fold(&mut self.state, session(), &record.record(), &context);
        match &outcome {
            Outcome::Applied(_) => assert_ne!(self.state, before, "{outcome:?} must change the state"),
            Outcome::Quarantined(Reason::Conflict(_)) => self.check_that_only_the_status_changed(&before),
            _ => assert_eq!(self.state, before, "{outcome:?} must not change the state"),
        }
        let bytes = self.state.encode();
        assert_eq!(
            SessionState::decode(&bytes).as_ref(),
            Ok(&self.state),
            "the state must round-trip"
        );
        outcome
    }

    /// Folds each of `records`; all must be applied.
    pub(crate) fn apply<'a, V: Variant + 'a>(&mut self, records: impl IntoIterator<Item = &'a V>) {
        for record in records {
            let outcome = self.fold(record);
            assert!(
                matches!(outcome, Outcome::Applied(_)),
                "{:?}: {outcome:?}",
                record.record()
            );
        }
    }

    pub(crate) fn lifetime(&self) -> &Lifetime {
        self.state.lifetime().expect("a lifetime is bound")
    }

    fn check_that_only_the_status_changed(&self, before: &SessionState) {
        assert_eq!(self.lifetime().status(), LifetimeStatus::Failed);
        let mut failed = wakelog_proto::v1::FoldState::default();
        prost::Message::merge(&mut failed, before.encode().as_slice()).unwrap();
        failed.lifetime.as_mut().unwrap().status = LifetimeStatus::Failed.into();
        assert_eq!(prost::Message::encode_to_vec(&failed), self.state.encode());
    }
}

pub(crate) const DUPLICATE: Outcome = Outcome::Duplicate { stale: false };
pub(crate) const STALE: Outcome = Outcome::Duplicate { stale: true };

pub(crate) fn stored(entry_seq: u64, part: u32, completes_entry: bool) -> Outcome {
    Outcome::Applied(Change::PartStored {
        entry_seq,
        part,
        completes_entry,
    })
}

pub(crate) fn gap(expected_seq: u64, expected_part: u32) -> Outcome {
    Outcome::Gap {
        expected_seq,
        expected_part,
    }
}
