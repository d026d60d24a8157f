//! One account's role. The last in the log wins.

use wakelog_proto::v1::{AccessChanged, AccessRole};

use super::{Context, check_known_here};
use crate::{Change, Outcome, Reason, SessionState, validate};

pub(super) fn change(
    state: &mut SessionState,
    record: &AccessChanged,
    context: &Context,
) -> Result<Outcome, Reason> {
    let (account, role) = validate::access(record)?;
    check_known_here(state, context)?;
    let before = match role {
        AccessRole::Unspecified => state.access.remove(account),
        role => state.access.insert(account.to_owned(), role),
    };
    if before.unwrap_or(AccessRole::Unspecified) == role {
        return Ok(Outcome::Duplicate { stale: false });
    }
    Ok(Outcome::Applied(Change::AccessChanged {
        account: account.to_owned(),
        role,
    }))
}
