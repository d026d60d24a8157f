//! What can go wrong, and which answers of a server are final.

use std::io;
use std::time::Duration;

use tonic::{Code, Status};
use wakelog_proto::v1::{Refusal, RefusalReason};

use crate::connection::innermost;

/// Why a call, a writer or a transfer did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server refused, and trying again as it stands would not help.
    #[error("refused ({code:?}): {message}")]
    Refused {
        /// The gRPC code: what a caller may do about it.
        code: Code,
        /// Why, for programs; absent if the server gave no detail.
        refusal: Option<Refusal>,
        /// Why, for people.
        message: String,
    },
    /// The server could not be reached.
    #[error("{endpoint} was not reachable within {waited:?}: {reason}")]
    Unreachable {
        /// Where it was looked for.
        endpoint: String,
        /// For how long.
        waited: Duration,
        /// What the last try said.
        reason: String,
    },
    /// The connection could not be made, or it broke. Whether the call that was under way happened is open.
    #[error("the connection failed: {reason}")]
    Lost {
        /// The cause at the bottom.
        reason: String,
    },
    /// Something answers there, in another protocol.
    #[error("no gRPC is spoken there: {message}")]
    NoGrpc {
        /// What the answer was.
        message: String,
    },
    /// The server is there and takes no entries.
    #[error("{endpoint} takes no entries: it is no relay")]
    NoRelay {
        /// Where it is.
        endpoint: String,
    },
    /// A writer went on trying until its time was over. Its unacknowledged entries may or may not be durable.
    #[error("no progress for {} s, {unacked_entries} entries are not acknowledged, last tried at {relay}: {reason}", .waited.as_secs())]
    GaveUp {
        /// How many entries are not acknowledged.
        unacked_entries: usize,
        /// For how long it tried.
        waited: Duration,
        /// The relay that it tried last.
        relay: String,
        /// What the last try said.
        reason: String,
    },
    /// The endpoint is not one that can be connected to.
    #[error("endpoint {endpoint:?} is not usable: {reason}")]
    Endpoint {
        /// What was given.
        endpoint: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The token holds characters that no header can carry.
    #[error("the token holds characters that cannot be sent")]
    Token,
    /// An entry has at least one byte.
    #[error("an entry has at least one byte")]
    EmptyEntry,
    /// The entry is larger than the server takes.
    #[error("the entry has {length} bytes, the server takes at most {limit}")]
    TooLarge {
        /// Bytes of the entry.
        length: u64,
        /// Bytes that the server takes.
        limit: u64,
    },
    /// The source of a streamed entry could not be read.
    #[error("the source of entry {entry_seq} could not be read")]
    Source {
        /// The entry.
        entry_seq: u64,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The source of a streamed entry gave other bytes when it was read again.
    #[error("the source of entry {entry_seq} changed while it was being sent")]
    SourceChanged {
        /// The entry.
        entry_seq: u64,
    },
    /// The received bytes could not be written.
    #[error("the received body could not be written")]
    Sink(#[source] io::Error),
    /// The body ended without its close. What was received may not be used.
    #[error("the body ended after {received} bytes without its close")]
    CutShort {
        /// Bytes that came.
        received: u64,
    },
    /// The body has another length than its close says.
    #[error("the body has {received} bytes, its close says {expected}")]
    LengthMismatch {
        /// Bytes that the close names.
        expected: u64,
        /// Bytes that came.
        received: u64,
    },
    /// The body has another SHA-256 than its close says.
    #[error("the body has SHA-256 {received}, its close says {expected}")]
    DigestMismatch {
        /// The digest that the close names.
        expected: String,
        /// The digest of what came.
        received: String,
    },
    /// The other side does not keep to the protocol.
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// The writer ended earlier; nothing more can be written through it.
    #[error("the writer has ended: {reason}")]
    WriterEnded {
        /// What ended it.
        reason: String,
    },
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        // A status with a source was made here, of a connection that failed: no server has refused anything.
        if let Some(source) = std::error::Error::source(&status) {
            return Self::Lost {
                reason: innermost(source),
            };
        }
        if is_other_protocol(&status) {
            return Self::NoGrpc {
                message: status.message().to_owned(),
            };
        }
        Self::Refused {
            code: status.code(),
            refusal: wakelog_contract::refusal_of(&status),
            message: match status.message() {
                "" => status.code().description().to_owned(),
                message => message.to_owned(),
            },
        }
    }
}

impl Error {
    /// The reason of a refusal, if there is one.
    pub fn refusal_reason(&self) -> Option<RefusalReason> {
        match self {
            Self::Refused {
                refusal: Some(refusal),
                ..
            } => Some(refusal.reason()),
            _ => None,
        }
    }
}

/// Whether an answer had no gRPC status at all: tonic makes one of the status of HTTP, and says so.
pub(crate) fn is_other_protocol(status: &Status) -> bool {
    status.message().starts_with("grpc-status header missing")
}

/// What a writer does about a status.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Nothing: it is final.
    Final,
    /// Renew the lifetime token, then go on.
    RenewToken,
    /// Connect again and send again from this entry.
    SendFrom(u64),
    /// Connect again, not before this delay has passed.
    Retry { delay: Option<Duration> },
}

/// Reads a status of the durable lane.
pub(crate) fn verdict(status: &Status) -> Verdict {
    let refusal = wakelog_contract::refusal_of(status);
    let reason = refusal
        .as_ref()
        .map_or(RefusalReason::Unspecified, |refusal| refusal.reason());
    let expected = refusal.as_ref().map_or(0, |refusal| refusal.expected);
    let delay = refusal
        .as_ref()
        .filter(|refusal| refusal.retry_delay_ms > 0)
        .map(|refusal| Duration::from_millis(refusal.retry_delay_ms));
    match (status.code(), reason) {
        (Code::Unauthenticated, RefusalReason::TokenExpired) => Verdict::RenewToken,
        (Code::FailedPrecondition, RefusalReason::Gap) => Verdict::SendFrom(expected),
        (Code::Unavailable | Code::ResourceExhausted | Code::Cancelled | Code::DeadlineExceeded, _) => {
            Verdict::Retry { delay }
        }
        // What a broken connection is reported as, if no service of ours said it.
        (Code::Unknown | Code::Internal | Code::Ok, RefusalReason::Unspecified) => Verdict::Retry { delay },
        _ => Verdict::Final,
    }
}

#[cfg(test)]
mod tests;
