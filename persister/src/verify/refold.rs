//! What the store must hold of one partition, by the log. Pure.

use std::collections::{BTreeMap, BTreeSet};

use wakelog_fold::{Change, Lifetime, Outcome, Reason, SessionState};
use wakelog_model::{Digest16, LifetimeId, SessionId, WriterNonce};
use wakelog_proto::v1::EntryPart;
use wakelog_proto::v1::session_record::Record as Variant;

use crate::decode::{Content, Decoded};
use crate::states::States;

/// The fold of a partition, from its first record on.
#[derive(Debug)]
pub(crate) struct Refold {
    next_offset: i64,
    states: States,
    sessions: BTreeMap<SessionId, ExpectedSession>,
    quarantined: BTreeMap<&'static str, u64>,
    touched: BTreeSet<SessionId>,
}

/// What the store must hold of a session, besides its state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExpectedSession {
    pub(crate) parts: BTreeMap<(u64, u32), ExpectedPart>,
    pub(crate) lifetimes: BTreeMap<u64, ExpectedLifetime>,
}

/// A part, without its bytes: the digest stands for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpectedPart {
    pub(crate) checkpoint: bool,
    pub(crate) last: bool,
    pub(crate) generation: u64,
    pub(crate) plain_length: u32,
    pub(crate) part_digest: Option<Digest16>,
}

/// A lifetime, as it is or as it was when the next bind superseded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedLifetime {
    pub(crate) lifetime_id: LifetimeId,
    pub(crate) request_id: String,
    pub(crate) base: u64,
    pub(crate) body_start: u64,
    pub(crate) nonce: Option<WriterNonce>,
    pub(crate) applied_seq: u64,
    pub(crate) status: i32,
}

impl Refold {
    pub(crate) fn new(partition: i32) -> Self {
        Self {
            next_offset: 0,
            states: States::new(partition),
            sessions: BTreeMap::new(),
            quarantined: BTreeMap::new(),
            touched: BTreeSet::new(),
        }
    }

    /// Takes the next record.
    pub(crate) fn take(&mut self, decoded: &Decoded) {
        self.next_offset = decoded.offset + 1;
        self.touched.extend(decoded.session);
        match (&decoded.content, decoded.session) {
            (Content::Foldable(record), Some(session)) => {
                let outcome = self.states.fold(session, record);
                self.take_outcome(session, record.record.as_ref(), &outcome);
            }
            (_, Some(session)) if self.states.is_gone(session) => {}
            (Content::Refused(refused), _) => self.quarantine(refused.reason.name()),
            (Content::Foldable(_), None) => {}
        }
    }

    pub(crate) fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// The sessions that were opened, in order.
    pub(crate) fn opened_sessions(&self) -> BTreeSet<SessionId> {
        self.states
            .iter()
            .filter(|(_, state)| state.is_known())
            .map(|(session, _)| session)
            .collect()
    }

    /// The session's state, if it was opened.
    pub(crate) fn state(&self, session: SessionId) -> Option<&SessionState> {
        self.states.get(session).filter(|state| state.is_known())
    }

    pub(crate) fn session(&self, session: SessionId) -> Option<&ExpectedSession> {
        self.sessions.get(&session)
    }

    pub(crate) fn quarantined(&self) -> &BTreeMap<&'static str, u64> {
        &self.quarantined
    }

    pub(crate) fn parts(&self) -> u64 {
        self.sessions
            .values()
            .map(|session| session.parts.len() as u64)
            .sum()
    }

    /// The sessions that records were of since the last time, and those that were erased with them.
    pub(crate) fn take_touched(&mut self) -> BTreeSet<SessionId> {
        std::mem::take(&mut self.touched)
    }

    fn take_outcome(&mut self, session: SessionId, record: Option<&Variant>, outcome: &Outcome) {
        match outcome {
            Outcome::Applied(change) => self.take_change(session, record, change),
            Outcome::Quarantined(reason) => {
                self.quarantine(reason.name());
                if matches!(reason, Reason::Conflict(_)) {
                    self.see_lifetime(session);
                }
            }
            Outcome::Duplicate { .. }
            | Outcome::Gap { .. }
            | Outcome::BindLost { .. }
            | Outcome::EndIgnored
            | Outcome::ErasedSession => {}
        }
    }

    fn take_change(&mut self, session: SessionId, record: Option<&Variant>, change: &Change) {
        match change {
            Change::SessionOpened | Change::AccessChanged { .. } => {}
            Change::LifetimeBound { discarded_entry_seq } => {
                if let Some(discarded) = *discarded_entry_seq {
                    let parts = &mut self.sessions.entry(session).or_default().parts;
                    parts.retain(|(entry_seq, _), _| *entry_seq != discarded);
                }
                self.see_lifetime(session);
            }
            Change::PartStored { entry_seq, part, .. } => {
                if let Some(Variant::EntryPart(stored)) = record {
                    let parts = &mut self.sessions.entry(session).or_default().parts;
                    parts.insert((*entry_seq, *part), ExpectedPart::of(stored));
                }
                self.see_lifetime(session);
            }
            Change::LifetimeEnded => self.see_lifetime(session),
            Change::SessionErased => self.erase(session),
        }
    }

    fn see_lifetime(&mut self, session: SessionId) {
        if let Some(lifetime) = self.states.get(session).and_then(SessionState::lifetime) {
            let lifetimes = &mut self.sessions.entry(session).or_default().lifetimes;
            lifetimes.insert(lifetime.generation(), ExpectedLifetime::of(lifetime));
        }
    }

    fn erase(&mut self, erased: SessionId) {
        for (session, expected) in &mut self.sessions {
            if *session == erased || self.states.is_below(*session, erased) {
                expected.parts.clear();
                self.touched.insert(*session);
            }
        }
    }

    fn quarantine(&mut self, reason: &'static str) {
        *self.quarantined.entry(reason).or_default() += 1;
    }
}

impl ExpectedPart {
    fn of(part: &EntryPart) -> Self {
        Self {
            checkpoint: part.checkpoint,
            last: part.last,
            generation: part.generation,
            plain_length: part.plain_length,
            part_digest: Digest16::from_slice(&part.part_digest),
        }
    }
}

impl ExpectedLifetime {
    fn of(lifetime: &Lifetime) -> Self {
        Self {
            lifetime_id: lifetime.id(),
            request_id: lifetime.request_id().to_owned(),
            base: lifetime.base(),
            body_start: lifetime.body_start(),
            nonce: lifetime.nonce(),
            applied_seq: lifetime.last_seq(),
            status: lifetime.status().into(),
        }
    }
}

#[cfg(test)]
mod tests;
