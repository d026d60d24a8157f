//! Where tests let a call die: with the feature `failpoints`, and nowhere without it.

use crate::Error;

pub(crate) const AFTER_RAISE: &str = "reconstructor::after_raise";
pub(crate) const AFTER_BIND_PUBLISH: &str = "reconstructor::after_bind_publish";
pub(crate) const AFTER_BIND_APPLIED: &str = "reconstructor::after_bind_applied";
pub(crate) const BETWEEN_PAGES: &str = "reconstructor::between_pages";
pub(crate) const BEFORE_CLOSE: &str = "reconstructor::before_close";

/// Ends the call, as a death at this point would, if the failpoint is set to `return`.
#[cfg(feature = "failpoints")]
pub(crate) fn reach(name: &'static str) -> Result<(), Error> {
    fail::fail_point!(name, |_| Err(Error::Failpoint(name)));
    Ok(())
}

/// Without the feature nothing dies.
#[cfg(not(feature = "failpoints"))]
#[allow(clippy::unnecessary_wraps, reason = "the same signature as with the feature")]
pub(crate) fn reach(_name: &'static str) -> Result<(), Error> {
    Ok(())
}
