//! What can go wrong, and what the caller is told about it.

use std::time::Duration;

use tonic::Status;
use wakelog_contract::{reason_name, refuse};
use wakelog_proto::v1::RefusalReason;
use wakelog_stream::PublishError;

use crate::bind_decision::BindRefusal;
use crate::metrics;

/// After what time a caller who met a limit may try again.
const BACK_PRESSURE_DELAY: Duration = Duration::from_millis(500);

/// Everything that ends a call, or the service, other than well.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The options do not work together.
    #[error("options: {0}")]
    Options(String),
    /// The call carries no token.
    #[error("the call carries no token: `authorization: Bearer <token>`")]
    TokenMissing,
    /// The token is not one that this service knows or signed.
    #[error("the token is not known here")]
    TokenForged,
    /// The session is unknown, or not the caller's to see. The same answer for both (opaque-absence).
    #[error("no such session")]
    SessionNotFound,
    /// A field is malformed.
    #[error("{0}")]
    Malformed(String),
    /// A field is too large.
    #[error("{what}: {actual}, at most {limit}")]
    TooLarge {
        /// The field, in words.
        what: &'static str,
        /// How large it is.
        actual: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The caller may see the session, and do no more than that.
    #[error("the session belongs to another account")]
    NotOwner,
    /// Another lifetime is current.
    #[error("the lifetime is not current; the current generation is {current}")]
    Superseded {
        /// The current generation; 0: none was ever bound.
        current: u64,
    },
    /// The lifetime has ended.
    #[error("the lifetime has ended")]
    LifetimeEnded,
    /// The lifetime has failed.
    #[error("the lifetime has failed on conflicting entries; bind a new one")]
    LifetimeFailed,
    /// Another bind won.
    #[error("another bind won; the current generation is {current}; try again with a new request")]
    BindLost {
        /// The current generation.
        current: u64,
    },
    /// The request was made before, with other contents.
    #[error("this request was made before with other contents: {0}")]
    Conflict(&'static str),
    /// There is no complete entry to resume from.
    #[error("the session holds no complete entry")]
    SessionEmpty,
    /// Too much is in flight.
    #[error("{limit} {what} are in flight, no more are taken")]
    Busy {
        /// What is in flight.
        what: &'static str,
        /// How many may be.
        limit: u64,
    },
    /// The bound of a wait passed. Whether what was waited for will happen is open.
    #[error("{what} was not seen within {waited:?}")]
    NotInTime {
        /// What was waited for.
        what: &'static str,
        /// How long.
        waited: Duration,
    },
    /// The receiver of a stream took nothing for too long.
    #[error("the receiver took nothing for {0:?}")]
    StalledReceiver(Duration),
    /// The caller has gone, or the service can wait no longer.
    #[error("the call was abandoned")]
    Abandoned,
    /// The service takes no new calls.
    #[error("the service is shutting down")]
    ShuttingDown,
    /// What is stored does not fit together.
    #[error("what is stored does not fit together: {0}")]
    Corrupt(String),
    /// Entries have left the hot tail, and this service knows no archive.
    #[error("entries {first} to {last} are in the archive, and this service has none configured")]
    NoArchive {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
    },
    /// The archive.
    #[error("archive: {0}")]
    Archive(#[from] wakelog_archive::Error),
    /// A failpoint ended the call.
    #[error("failpoint {0}")]
    Failpoint(&'static str),
    /// The hot tail.
    #[error("hot tail: {0}")]
    Store(#[from] wakelog_store::Error),
    /// The log.
    #[error("log: {0}")]
    Log(#[from] wakelog_stream::Error),
    /// The log refused a record, or lost it for certain.
    #[error("log: {0}")]
    Publish(#[from] PublishError),
    /// A call's task died.
    #[error("the call's task died")]
    TaskDied,
    /// Calls were still in flight when a shutdown's bound passed.
    #[error("{calls} calls were still in flight after {waited:?}")]
    NotDrained {
        /// How many.
        calls: usize,
        /// How long they were waited for.
        waited: Duration,
    },
}

impl From<BindRefusal> for Error {
    fn from(refusal: BindRefusal) -> Self {
        match refusal {
            BindRefusal::Superseded { current } => Self::Superseded { current },
            BindRefusal::Ended => Self::LifetimeEnded,
            BindRefusal::Failed => Self::LifetimeFailed,
            BindRefusal::Empty => Self::SessionEmpty,
        }
    }
}

impl Error {
    /// The reason that a caller is told.
    pub fn reason(&self) -> RefusalReason {
        match self {
            Self::TokenMissing => RefusalReason::TokenMissing,
            Self::TokenForged => RefusalReason::TokenForged,
            Self::SessionNotFound => RefusalReason::SessionNotFound,
            Self::Malformed(_) => RefusalReason::Malformed,
            Self::TooLarge { .. } => RefusalReason::TooLarge,
            Self::NotOwner => RefusalReason::TokenForeign,
            Self::Superseded { .. } => RefusalReason::Superseded,
            Self::LifetimeEnded => RefusalReason::LifetimeEnded,
            Self::LifetimeFailed => RefusalReason::LifetimeFailed,
            Self::BindLost { .. } => RefusalReason::BindLost,
            Self::Conflict(_) => RefusalReason::Conflict,
            Self::SessionEmpty => RefusalReason::SessionEmpty,
            Self::Busy { .. } | Self::Publish(PublishError::QueueFull { .. }) => RefusalReason::BackPressure,
            Self::Abandoned | Self::ShuttingDown => RefusalReason::ShuttingDown,
            Self::Corrupt(_) | Self::Store(wakelog_store::Error::Bug(_)) => RefusalReason::StoreCorrupt,
            Self::Archive(error) if !is_away(error) => RefusalReason::StoreCorrupt,
            Self::Archive(_)
            | Self::NoArchive { .. }
            | Self::Options(_)
            | Self::NotInTime { .. }
            | Self::StalledReceiver(_)
            | Self::Failpoint(_)
            | Self::Store(_)
            | Self::Log(_)
            | Self::Publish(_)
            | Self::TaskDied
            | Self::NotDrained { .. } => RefusalReason::DependencyUnavailable,
        }
    }

    /// The status that a caller gets. Counts and logs the refusal: call it once, at the end of a call.
    pub(crate) fn into_status(self) -> Status {
        let reason = self.reason();
        metrics::refused(reason);
        match reason {
            RefusalReason::StoreCorrupt => {
                tracing::error!(error = %self, "what is stored does not fit together");
            }
            RefusalReason::DependencyUnavailable => {
                tracing::warn!(error = %self, "a call ended without an answer");
            }
            _ => tracing::debug!(reason = reason_name(reason), error = %self, "call refused"),
        }
        let refusal = refuse(reason, self.message());
        match self {
            Self::Superseded { current } | Self::BindLost { current } => refusal.expected(current),
            Self::TooLarge { limit, .. } => refusal.limit(limit),
            Self::Busy { limit, .. } => refusal.limit(limit).retry_delay(BACK_PRESSURE_DELAY),
            Self::Publish(_) if reason == RefusalReason::BackPressure => {
                refusal.retry_delay(BACK_PRESSURE_DELAY)
            }
            _ => refusal,
        }
        .build()
    }

    /// What a caller may read. What a dependency said is for the log only.
    fn message(&self) -> String {
        match self {
            Self::Store(wakelog_store::Error::Bug(_)) => "what is stored does not fit together".to_owned(),
            Self::Store(_) => "the hot tail did not answer".to_owned(),
            Self::Archive(error) if is_away(error) => "the archive did not answer".to_owned(),
            Self::Archive(_) => "a segment of the archive is missing or damaged".to_owned(),
            Self::Log(_) => "the log did not answer".to_owned(),
            Self::Publish(PublishError::QueueFull { .. }) => "the log takes no more records now".to_owned(),
            Self::Publish(_) => "the log did not take the record".to_owned(),
            _ => self.to_string(),
        }
    }
}

/// Whether the archive can't be read now. Otherwise what it holds is missing or damaged.
fn is_away(error: &wakelog_archive::Error) -> bool {
    use wakelog_archive::Failure;
    match error.failure() {
        Some(Failure::NotFound | Failure::Corrupt | Failure::Truncated) => false,
        Some(_) => true,
        None => matches!(error, wakelog_archive::Error::Failpoint { .. }),
    }
}

#[cfg(test)]
mod tests;
