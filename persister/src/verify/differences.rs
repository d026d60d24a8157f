//! Which differences are kept, and which are taken back because the session has changed since it was read. Pure.

use std::collections::{BTreeMap, BTreeSet};

use wakelog_model::SessionId;

use super::report::{Difference, DifferenceKind, MAX_LISTED};

/// The differences of one partition.
#[derive(Debug)]
pub(crate) struct Differences {
    partition: i32,
    /// By session; `None` is the partition as a whole.
    found: BTreeMap<Option<SessionId>, OfSession>,
    listed: usize,
}

#[derive(Debug, Default)]
struct OfSession {
    count: u64,
    listed: Vec<Difference>,
}

impl Differences {
    pub(crate) fn new(partition: i32) -> Self {
        Self {
            partition,
            found: BTreeMap::new(),
            listed: 0,
        }
    }

    pub(crate) fn add(
        &mut self,
        session: Option<SessionId>,
        kind: DifferenceKind,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        let of_session = self.found.entry(session).or_default();
        of_session.count += 1;
        if self.listed >= MAX_LISTED {
            return;
        }
        self.listed += 1;
        let (partition, expected, found) = (self.partition, expected.into(), found.into());
        of_session.listed.push(Difference {
            partition,
            session,
            kind,
            expected,
            found,
        });
    }

    /// Takes back what was found of the sessions.
    pub(crate) fn take_back(&mut self, sessions: &BTreeSet<SessionId>) {
        for session in sessions {
            if let Some(of_session) = self.found.remove(&Some(*session)) {
                self.listed -= of_session.listed.len();
            }
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.found.values().map(|of_session| of_session.count).sum()
    }

    pub(crate) fn into_listed(self) -> Vec<Difference> {
        self.found
            .into_values()
            .flat_map(|of_session| of_session.listed)
            .collect()
    }
}

#[cfg(test)]
mod tests;
