//! What a batch's records change in the hot tail. Pure.
//!
//! Outcomes are taken one by one and add up to one [`BatchWrites`]: the store deletes first and then inserts, each
//! row at most once. So
//!
//! * parts that a bind discards are taken out of what is still to be inserted, and the delete is queued for those that
//!   an earlier batch stored. What the new lifetime writes under the same entry_seq comes after that and stays;
//! * a session is written once, as it is at the end of the batch;
//! * a lifetime is written once, as it is at the end of the batch or as it was when the next bind superseded it;
//! * nothing of an erased session, or of one below it, is inserted, whatever came before.

use std::collections::{BTreeMap, BTreeSet};

use wakelog_fold::{Change, Lifetime, Outcome, Reason, SessionState};
use wakelog_model::{Digest16, SessionId};
use wakelog_proto::v1::session_record::Record as Variant;
use wakelog_proto::v1::{EntryPart, SessionRecord};
use wakelog_store::{AccessWrite, BatchWrites, LifetimeWrite, PartRow, QuarantinedRecord, SessionWrite};

use crate::counts::Counts;
use crate::decode::{Decoded, Refused};
use crate::states::States;

/// A decision of the fold that its record contradicts: a bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the fold's outcome does not fit its record or its state: {what}")]
pub(crate) struct EffectsBug {
    what: &'static str,
}

impl EffectsBug {
    pub(crate) fn without_session() -> Self {
        Self {
            what: "a record without a session was decoded",
        }
    }
}

/// What the batch changes so far.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    topic: String,
    partition: i32,
    sessions: BTreeMap<SessionId, SessionEffects>,
    quarantined: Vec<QuarantinedRecord>,
    counts: Counts,
}

/// What changes in one session. An entry exists only for a session that the batch changed.
#[derive(Debug, Default)]
struct SessionEffects {
    /// When it was opened, if this batch did that, and when it was changed last: by the log's clock, in milliseconds since 1970. A
    /// fold of the same log later says the same.
    opened_at_ms: Option<u64>,
    changed_at_ms: Option<u64>,
    lifetimes: BTreeMap<u64, LifetimeWrite>,
    access: BTreeMap<String, i32>,
    discarded_entries: BTreeSet<u64>,
    parts: BTreeMap<(u64, u32), PartRow>,
    erased: bool,
}

impl Effects {
    pub(crate) fn new(topic: &str, partition: i32) -> Self {
        Self {
            topic: topic.to_owned(),
            partition,
            ..Self::default()
        }
    }

    /// Takes what the fold decided about `record` of `session`; `states` are those after it.
    pub(crate) fn apply(
        &mut self,
        decoded: &Decoded,
        session: SessionId,
        record: &SessionRecord,
        outcome: &Outcome,
        states: &States,
    ) -> Result<(), EffectsBug> {
        self.counts.outcome(outcome);
        let state = states.get(session).ok_or(EffectsBug {
            what: "the session has no state",
        })?;
        match outcome {
            Outcome::Applied(change) => {
                self.touch(session, decoded);
                self.apply_change(session, decoded, record, change, state, states)
            }
            Outcome::Quarantined(reason) => {
                if matches!(reason, Reason::Conflict(_)) {
                    // The one decision that changes the state without applying the record: the lifetime has failed.
                    self.touch(session, decoded).write_lifetime(session, state)?;
                }
                self.quarantine(decoded, reason.name(), reason.to_string());
                Ok(())
            }
            Outcome::Duplicate { .. }
            | Outcome::Gap { .. }
            | Outcome::BindLost { .. }
            | Outcome::EndIgnored
            | Outcome::ErasedSession => Ok(()),
        }
    }

    /// Takes a record that can't be folded.
    pub(crate) fn refuse(&mut self, decoded: &Decoded, refused: &Refused, states: &States) {
        if decoded.session.is_some_and(|session| states.is_gone(session)) {
            self.counts.outcome(&Outcome::ErasedSession);
            return;
        }
        self.counts.refused();
        self.quarantine(decoded, refused.reason.name(), refused.detail.clone());
    }

    /// What to write, with the states at the end of the batch, and what to count once it is committed.
    pub(crate) fn finish(self, states: &States) -> Result<(BatchWrites, Counts), EffectsBug> {
        let mut writes = BatchWrites::default();
        for (session, effects) in self.sessions {
            let state = states.get(session).ok_or(EffectsBug {
                what: "the session has no state",
            })?;
            writes.sessions.push(SessionWrite {
                opened_at_us: microseconds(effects.opened_at_ms),
                updated_at_us: microseconds(effects.changed_at_ms),
                ..session_write(session, state)?
            });
            writes.lifetimes.extend(effects.lifetimes.into_values());
            let access = effects.access.into_iter();
            writes.access.extend(access.map(|(account, role)| AccessWrite {
                session,
                account,
                role,
            }));
            writes.discarded_entries.extend(
                effects
                    .discarded_entries
                    .iter()
                    .map(|entry_seq| (session, *entry_seq)),
            );
            writes.parts.extend(effects.parts.into_values());
            if effects.erased {
                writes.erased.push(session);
            }
        }
        writes.quarantined = self.quarantined;
        Ok((writes, self.counts))
    }

    fn apply_change(
        &mut self,
        session: SessionId,
        decoded: &Decoded,
        record: &SessionRecord,
        change: &Change,
        state: &SessionState,
        states: &States,
    ) -> Result<(), EffectsBug> {
        let effects = self.sessions.entry(session).or_default();
        match change {
            Change::SessionOpened => {
                effects.opened_at_ms = decoded.logged_at_ms;
                Ok(())
            }
            Change::AccessChanged { account, role } => {
                effects.access.insert(account.clone(), i32::from(*role));
                Ok(())
            }
            Change::LifetimeBound { discarded_entry_seq } => {
                if let Some(entry_seq) = *discarded_entry_seq {
                    effects
                        .parts
                        .retain(|(pending_seq, _), _| *pending_seq != entry_seq);
                    effects.discarded_entries.insert(entry_seq);
                }
                effects.write_lifetime(session, state)?;
                effects.bound_at(state.generation(), decoded.logged_at_ms);
                Ok(())
            }
            Change::PartStored { entry_seq, part, .. } => {
                let Some(Variant::EntryPart(stored)) = &record.record else {
                    return Err(EffectsBug {
                        what: "a part was stored from a record that is none",
                    });
                };
                let row = part_row(session, *entry_seq, *part, stored)?;
                if effects.parts.insert((*entry_seq, *part), row).is_some() {
                    return Err(EffectsBug {
                        what: "the same part was stored twice",
                    });
                }
                effects.write_lifetime(session, state)
            }
            Change::LifetimeEnded => effects.write_lifetime(session, state),
            Change::SessionErased => {
                self.erase(session, states);
                Ok(())
            }
        }
    }

    /// The session is changed by this record.
    fn touch(&mut self, session: SessionId, decoded: &Decoded) -> &mut SessionEffects {
        let effects = self.sessions.entry(session).or_default();
        effects.changed_at_ms = effects.changed_at_ms.max(decoded.logged_at_ms);
        effects
    }

    fn erase(&mut self, erased: SessionId, states: &States) {
        let is_gone = |session: SessionId| session == erased || states.is_below(session, erased);
        for (session, effects) in &mut self.sessions {
            if is_gone(*session) {
                effects.access.values_mut().for_each(|role| *role = 0);
                effects.parts.clear();
                effects.discarded_entries.clear();
            }
        }
        // What was quarantined before stays, as it would have from an earlier batch; the store takes its raw bytes.
        self.sessions.entry(erased).or_default().erased = true;
    }

    fn quarantine(&mut self, decoded: &Decoded, reason: &'static str, detail: String) {
        self.counts.quarantined(reason);
        self.quarantined.push(QuarantinedRecord {
            topic: self.topic.clone(),
            partition: self.partition,
            offset: decoded.offset,
            record_key: decoded.key.to_vec(),
            reason,
            detail,
            raw: decoded.raw.clone(),
        });
    }
}

impl SessionEffects {
    /// Writes the current lifetime as it is now.
    fn write_lifetime(&mut self, session: SessionId, state: &SessionState) -> Result<(), EffectsBug> {
        let lifetime = state.lifetime().ok_or(EffectsBug {
            what: "the session has no lifetime",
        })?;
        if let Some(pending) = self.lifetimes.get_mut(&lifetime.generation()) {
            pending.nonce = lifetime.nonce();
            pending.applied_seq = lifetime.last_seq();
            pending.status = lifetime.status().into();
            return Ok(());
        }
        self.lifetimes
            .insert(lifetime.generation(), lifetime_write(session, lifetime));
        Ok(())
    }

    fn bound_at(&mut self, generation: u64, logged_at_ms: Option<u64>) {
        if let Some(lifetime) = self.lifetimes.get_mut(&generation) {
            lifetime.bound_at_ms = logged_at_ms;
        }
    }
}

fn microseconds(milliseconds: Option<u64>) -> Option<u64> {
    milliseconds.map(|milliseconds| milliseconds.saturating_mul(1_000))
}

pub(crate) fn session_write(session: SessionId, state: &SessionState) -> Result<SessionWrite, EffectsBug> {
    let opened = state.opened().ok_or(EffectsBug {
        what: "a changed session was never opened",
    })?;
    Ok(SessionWrite {
        session,
        partition: opened.partition,
        owner: opened.owner.clone(),
        labels: opened.labels.clone(),
        parent: opened.parent,
        subpath: opened.subpath.clone(),
        state: state.encode(),
        last_entry_seq: state.last_entry_seq(),
        last_checkpoint_seq: state.last_checkpoint_seq(),
        generation: state.generation(),
        lifetime_status: state.lifetime().map_or(0, |lifetime| lifetime.status().into()),
        erased: state.is_erased(),
        opened_at_us: None,
        updated_at_us: None,
    })
}

fn lifetime_write(session: SessionId, lifetime: &Lifetime) -> LifetimeWrite {
    LifetimeWrite {
        session,
        generation: lifetime.generation(),
        lifetime_id: lifetime.id(),
        request_id: lifetime.request_id().to_owned(),
        base: lifetime.base(),
        body_start: lifetime.body_start(),
        nonce: lifetime.nonce(),
        applied_seq: lifetime.last_seq(),
        status: lifetime.status().into(),
        bound_at_ms: None,
    }
}

fn part_row(
    session: SessionId,
    entry_seq: u64,
    part: u32,
    stored: &EntryPart,
) -> Result<PartRow, EffectsBug> {
    let part_digest = Digest16::from_slice(&stored.part_digest).ok_or(EffectsBug {
        what: "a part without a digest was stored",
    })?;
    Ok(PartRow {
        session,
        entry_seq,
        part,
        last: stored.last,
        checkpoint: stored.checkpoint,
        generation: stored.generation,
        encoding: stored.encoding,
        plain_length: stored.plain_length,
        part_digest,
        body: stored.body.clone(),
    })
}

#[cfg(test)]
mod tests;
