//! Why there is no connection.

use super::Error;
use super::conversion::{
    CLASS_INVALID_AUTHORIZATION, CLASS_INVALID_CATALOG, INSUFFICIENT_PRIVILEGE, sqlstate,
};

/// What the server adds when its rules have no place for a connection as it came; older servers say it the second way.
const WITHOUT_TLS: [&str; 2] = ["no encryption", "SSL off"];

/// Why there is no connection. A server that is starting or has none left is away; one that knows neither the user nor the
/// database will not know them later.
pub(crate) fn connection_error(error: &sqlx::Error) -> Error {
    let refused = match error {
        sqlx::Error::Database(refused) => refused,
        // What answers does not speak the protocol.
        sqlx::Error::Protocol(said) => {
            return Error::Unusable {
                reason: format!("what listens there does not answer as PostgreSQL does: {said}"),
            };
        }
        _ => {
            return Error::Unreachable {
                reason: error.to_string(),
            };
        }
    };
    // Without the place in the server's source, which sqlx adds.
    let reason = refused.message().to_owned();
    let code = sqlstate(refused.as_ref());
    if code.starts_with(CLASS_INVALID_AUTHORIZATION) && WITHOUT_TLS.iter().any(|end| reason.ends_with(end)) {
        return Error::TlsWanted { reason };
    }
    match code.starts_with(CLASS_INVALID_AUTHORIZATION)
        || code.starts_with(CLASS_INVALID_CATALOG)
        || code == INSUFFICIENT_PRIVILEGE
    {
        true => Error::ConnectionRefused { reason },
        false => Error::Unreachable { reason },
    }
}

impl Error {
    /// The same, naming the database: whoever connects may have several.
    pub(crate) fn at(self, place: &str) -> Self {
        let at = |reason: String| format!("{place}: {reason}");
        match self {
            Self::Unreachable { reason } => Self::Unreachable { reason: at(reason) },
            Self::ConnectionRefused { reason } => Self::ConnectionRefused { reason: at(reason) },
            Self::Unusable { reason } => Self::Unusable { reason: at(reason) },
            Self::TlsWanted { reason } => Self::TlsWanted { reason: at(reason) },
            Self::NotAllowed { reason } => Self::NotAllowed { reason: at(reason) },
            other => other,
        }
    }
}
