//! The order of the decisions; then one module for each kind of record.

mod access;
mod bind;
mod part;
mod session;

use wakelog_model::SessionId;
use wakelog_proto::v1::SessionRecord;
use wakelog_proto::v1::session_record::Record;

use crate::{Malformed, Outcome, Reason, SessionState};

/// What the fold is told about a record that is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// The partition that the record was read from.
    pub partition: i32,
    /// Whether a session above this one is erased.
    pub root_erased: bool,
}

/// Decides what `record` does to `state`, which is that of `session`, and does it.
///
/// Any record at all is decided; none panics. What is not applied leaves the state as it was, except that a conflict
/// makes the lifetime failed.
pub fn fold(
    state: &mut SessionState,
    session: SessionId,
    record: &SessionRecord,
    context: &Context,
) -> Outcome {
    decide(state, session, record, context).unwrap_or_else(Outcome::Quarantined)
}

fn decide(
    state: &mut SessionState,
    session: SessionId,
    record: &SessionRecord,
    context: &Context,
) -> Result<Outcome, Reason> {
    let record = record.record.as_ref().ok_or(Malformed::NoRecord)?;
    if state.erased {
        return Ok(Outcome::ErasedSession);
    }
    match record {
        // Before the root's flag: a sub-session of an erased session still gets its own tombstone.
        Record::SessionErased(_) => session::erase(state, context),
        _ if context.root_erased => Ok(Outcome::ErasedSession),
        Record::SessionOpened(record) => session::open(state, session, record, context),
        Record::AccessChanged(record) => access::change(state, record, context),
        Record::LifetimeBound(record) => bind::bind(state, session, record, context),
        Record::LifetimeEnded(record) => bind::end(state, record, context),
        Record::EntryPart(record) => part::take(state, record, context),
    }
}

/// A session may only be changed from the partition it is pinned to, whose order decides. Any other record for it is
/// refused whatever it says.
fn check_known_here(state: &SessionState, context: &Context) -> Result<(), Reason> {
    let opened = state.opened.as_ref().ok_or(Reason::Unbound)?;
    if opened.partition != context.partition {
        return Err(Reason::WrongPartition);
    }
    Ok(())
}
