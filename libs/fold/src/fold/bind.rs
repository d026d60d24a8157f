//! Which lifetime is current, and whether it still is active.

use std::collections::VecDeque;

use wakelog_model::SessionId;
use wakelog_proto::v1::{LifetimeBound, LifetimeEnded, LifetimeStatus};

use super::{Context, check_known_here};
use crate::{Change, Lifetime, Outcome, Reason, SessionState, validate};

pub(super) fn bind(
    state: &mut SessionState,
    session: SessionId,
    record: &LifetimeBound,
    context: &Context,
) -> Result<Outcome, Reason> {
    let bind = validate::bind(session, record)?;
    check_known_here(state, context)?;
    let current = state.generation();
    if state
        .lifetime
        .as_ref()
        .is_some_and(|lifetime| lifetime.id == bind.lifetime)
    {
        return Ok(Outcome::Duplicate { stale: false });
    }
    if bind.generation.checked_sub(1) != Some(current) {
        return Ok(Outcome::BindLost { generation: current });
    }
    let left_unfinished = state
        .lifetime
        .as_ref()
        .is_some_and(|lifetime| lifetime.open_entry.is_some());
    state.lifetime = Some(Lifetime {
        id: bind.lifetime,
        generation: bind.generation,
        request_id: bind.request_id.to_owned(),
        base: state.last_entry_seq,
        body_start: state.last_checkpoint_seq.max(1),
        nonce: None,
        status: LifetimeStatus::Active,
        last_seq: 0,
        remembered: VecDeque::new(),
        open_entry: None,
    });
    let discarded_entry_seq = left_unfinished.then(|| state.last_entry_seq.saturating_add(1));
    Ok(Outcome::Applied(Change::LifetimeBound { discarded_entry_seq }))
}

pub(super) fn end(
    state: &mut SessionState,
    record: &LifetimeEnded,
    context: &Context,
) -> Result<Outcome, Reason> {
    let ended = validate::lifetime_id(&record.lifetime_id)?;
    check_known_here(state, context)?;
    match &mut state.lifetime {
        Some(lifetime) if lifetime.id == ended && lifetime.status == LifetimeStatus::Active => {
            lifetime.status = LifetimeStatus::Ended;
            Ok(Outcome::Applied(Change::LifetimeEnded))
        }
        // A failed lifetime stays failed.
        _ => Ok(Outcome::EndIgnored),
    }
}
