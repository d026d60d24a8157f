//! The copies of session states that a batch folds into, and what lies above a sub-session. Pure.

use std::collections::HashMap;

use wakelog_fold::{Context, Outcome, SessionState, fold};
use wakelog_model::SessionId;
use wakelog_proto::v1::SessionRecord;

/// How far up a chain of sub-sessions is followed. Deeper ones rely on the flag that they were loaded with.
pub(crate) const MAX_ANCESTORS: usize = 32;

/// Working copies of the sessions of one partition.
#[derive(Debug, Clone)]
pub(crate) struct States {
    partition: i32,
    sessions: HashMap<SessionId, Known>,
}

/// One working copy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) state: SessionState,
    /// Whether a session above it was erased when it was loaded. Erasing is final, so a true never gets stale; a
    /// false does, which is why the sessions above it are asked too.
    pub(crate) root_erased: bool,
}

impl States {
    pub(crate) fn new(partition: i32) -> Self {
        Self {
            partition,
            sessions: HashMap::new(),
        }
    }

    pub(crate) fn insert(&mut self, session: SessionId, known: Known) {
        self.sessions.insert(session, known);
    }

    pub(crate) fn contains(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    pub(crate) fn get(&self, session: SessionId) -> Option<&SessionState> {
        self.sessions.get(&session).map(|known| &known.state)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionId, &SessionState)> {
        self.sessions
            .iter()
            .map(|(session, known)| (*session, &known.state))
    }

    /// The copies that may be remembered: this partition's own sessions. Of any other session another process may
    /// know more by the next batch.
    pub(crate) fn into_own(self) -> impl Iterator<Item = (SessionId, Known)> {
        let partition = self.partition;
        self.sessions.into_iter().filter(move |(_, known)| {
            known
                .state
                .opened()
                .is_some_and(|opened| opened.partition == partition)
        })
    }

    /// Parents of the copies that are not among them.
    pub(crate) fn missing_parents(&self) -> Vec<SessionId> {
        let mut missing: Vec<SessionId> = self
            .sessions
            .values()
            .filter_map(|known| known.state.opened()?.parent)
            .filter(|parent| !self.contains(*parent))
            .collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Whether a session above `session` is erased.
    pub(crate) fn is_root_erased(&self, session: SessionId) -> bool {
        let was_loaded_so = self.sessions.get(&session).is_some_and(|known| known.root_erased);
        was_loaded_so
            || self
                .ancestors(session)
                .any(|(_, above)| above.state.is_erased() || above.root_erased)
    }

    /// Whether the session, or one above it, is erased: nothing of it may be kept.
    pub(crate) fn is_gone(&self, session: SessionId) -> bool {
        self.get(session).is_some_and(SessionState::is_erased) || self.is_root_erased(session)
    }

    /// Whether `session` is a sub-session of `root`, at any depth.
    pub(crate) fn is_below(&self, session: SessionId, root: SessionId) -> bool {
        session != root && self.ancestors(session).any(|(above, _)| above == root)
    }

    /// Folds one record into the copy of its session.
    pub(crate) fn fold(&mut self, session: SessionId, record: &SessionRecord) -> Outcome {
        let root_erased = match &record.record {
            // The record itself may be what names the parent.
            Some(wakelog_proto::v1::session_record::Record::SessionOpened(opened)) => {
                self.is_root_erased(session) || self.is_parent_gone(&opened.parent_session_id)
            }
            _ => self.is_root_erased(session),
        };
        let context = Context {
            partition: self.partition,
            root_erased,
        };
        let known = self.sessions.entry(session).or_default();
        fold(&mut known.state, session, record, &context)
    }

    fn is_parent_gone(&self, parent: &str) -> bool {
        let Ok(parent) = parent.parse::<SessionId>() else {
            return false;
        };
        self.is_on_this_partition(parent) && self.is_gone(parent)
    }

    /// The sessions above `session`, nearest first. A parent on another partition is not one: the order of two
    /// partitions is nobody's, so a replay could decide differently.
    fn ancestors(&self, session: SessionId) -> impl Iterator<Item = (SessionId, &Known)> {
        let parent_of = move |session: SessionId| {
            let parent = self.sessions.get(&session)?.state.opened()?.parent?;
            self.is_on_this_partition(parent).then_some(parent)
        };
        std::iter::successors(parent_of(session), move |above| parent_of(*above))
            .take(MAX_ANCESTORS)
            .filter_map(move |above| self.sessions.get(&above).map(|known| (above, known)))
    }

    fn is_on_this_partition(&self, session: SessionId) -> bool {
        let opened = self.get(session).and_then(SessionState::opened);
        opened.is_some_and(|opened| opened.partition == self.partition)
    }
}

#[cfg(test)]
mod tests;
