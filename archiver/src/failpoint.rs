//! Where tests let an archiver die: with the feature `failpoints`, and nowhere without it.

use crate::Error;

pub(crate) const BEFORE_STAGE: &str = "archiver::before_stage";
pub(crate) const AFTER_STAGE: &str = "archiver::after_stage";
pub(crate) const AFTER_PUT: &str = "archiver::after_put";
pub(crate) const BEFORE_STATE: &str = "archiver::before_state";
pub(crate) const AFTER_STATE: &str = "archiver::after_state";
pub(crate) const BEFORE_SWEEP: &str = "archiver::before_sweep";
pub(crate) const AFTER_SWEEP: &str = "archiver::after_sweep";

/// Ends the work on a session, as a death at this point would, if the failpoint is set to `return`.
#[cfg(feature = "failpoints")]
pub(crate) fn reach(name: &'static str) -> Result<(), Error> {
    fail::fail_point!(name, |_| Err(Error::Failpoint { name }));
    Ok(())
}

/// Without the feature nothing dies.
#[cfg(not(feature = "failpoints"))]
#[allow(clippy::unnecessary_wraps, reason = "the same signature as with the feature")]
pub(crate) fn reach(_name: &'static str) -> Result<(), Error> {
    Ok(())
}
