//! Opening and erasing a session.

use wakelog_model::SessionId;
use wakelog_proto::v1::SessionOpened;

use super::{Context, check_known_here};
use crate::{Change, Malformed, Outcome, Reason, SessionState, validate};

pub(super) fn open(
    state: &mut SessionState,
    session: SessionId,
    record: &SessionOpened,
    context: &Context,
) -> Result<Outcome, Reason> {
    let opened = validate::opened(record)?;
    if opened.parent == Some(session) {
        return Err(Malformed::ParentIsItself.into());
    }
    if opened.partition != context.partition {
        return Err(Reason::WrongPartition);
    }
    match &state.opened {
        None => {
            state.opened = Some(opened);
            Ok(Outcome::Applied(Change::SessionOpened))
        }
        Some(known) if *known == opened => Ok(Outcome::Duplicate { stale: false }),
        Some(_) => Err(Reason::SessionConflict),
    }
}

pub(super) fn erase(state: &mut SessionState, context: &Context) -> Result<Outcome, Reason> {
    check_known_here(state, context)?;
    state.erased = true;
    state.access.clear();
    if let Some(lifetime) = &mut state.lifetime {
        lifetime.open_entry = None;
    }
    Ok(Outcome::Applied(Change::SessionErased))
}
