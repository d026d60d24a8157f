//! What a batch's records came to, counted once its COMMIT is known.

use std::collections::BTreeMap;

use wakelog_fold::{Change, Outcome};

/// Records by outcome, quarantined ones by reason, and complete entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) outcomes: BTreeMap<&'static str, u64>,
    pub(crate) quarantined: BTreeMap<&'static str, u64>,
    pub(crate) entries: u64,
}

impl Counts {
    /// Counts one record by what the fold decided.
    pub(crate) fn outcome(&mut self, outcome: &Outcome) {
        *self.outcomes.entry(outcome_name(outcome)).or_default() += 1;
        if let Outcome::Applied(Change::PartStored {
            completes_entry: true,
            ..
        }) = outcome
        {
            self.entries += 1;
        }
    }

    /// Counts one record that was put aside before the fold.
    pub(crate) fn refused(&mut self) {
        *self.outcomes.entry("quarantined").or_default() += 1;
    }

    /// Counts one record that is put aside.
    pub(crate) fn quarantined(&mut self, reason: &'static str) {
        *self.quarantined.entry(reason).or_default() += 1;
    }
}

/// The outcome's stable name in metrics.
fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Applied(Change::SessionOpened) => "session_opened",
        Outcome::Applied(Change::AccessChanged { .. }) => "access_changed",
        Outcome::Applied(Change::LifetimeBound { .. }) => "lifetime_bound",
        Outcome::Applied(Change::PartStored { .. }) => "part_stored",
        Outcome::Applied(Change::LifetimeEnded) => "lifetime_ended",
        Outcome::Applied(Change::SessionErased) => "session_erased",
        Outcome::Duplicate { stale: false } => "duplicate",
        Outcome::Duplicate { stale: true } => "duplicate_stale",
        Outcome::Gap { .. } => "gap",
        Outcome::BindLost { .. } => "bind_lost",
        Outcome::EndIgnored => "end_ignored",
        Outcome::ErasedSession => "erased_session",
        Outcome::Quarantined(_) => "quarantined",
    }
}
