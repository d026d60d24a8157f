//! What can be wrong with a stored state.

use crate::Malformed;

/// Why stored bytes are not a state that the fold can have written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are not a `wakelog.v1.FoldState`.
    #[error("stored fold state does not decode: {0}")]
    Undecodable(#[from] prost::DecodeError),
    /// A field has a value that no record could have given it.
    #[error("stored fold state has a malformed field: {0}")]
    Malformed(#[from] Malformed),
    /// The fields do not fit together.
    #[error("stored fold state is inconsistent: {what}")]
    Inconsistent {
        /// What does not fit.
        what: &'static str,
    },
    /// The bytes hold something that this build would lose: a field of a newer build, or another order of fields.
    #[error("stored fold state is not in the form that this build writes")]
    NotCanonical,
}
