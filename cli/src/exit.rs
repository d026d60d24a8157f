//! How a failure becomes an exit code, one sentence and a hint.

use std::fmt::Display;
use std::io;

use tonic::{Code, Status};
use wakelog_contract::{Exit, exit_of};
use wakelog_proto::v1::RefusalReason;

/// The end of a command that did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Error {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// What a server refused it for, if one did.
    refusal: Option<RefusalReason>,
}

impl Error {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hint: None,
            refusal: None,
        }
    }

    /// The command line, a variable or the configuration file is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// What was asked is refused as it stands.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message)
    }

    /// A dependency is away or wrong.
    pub(crate) fn dependency(message: impl Into<String>) -> Self {
        Self::new(Exit::Dependency, message)
    }

    /// Anything else.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// A file or stream of this machine.
    pub(crate) fn io(what: impl Display, error: &io::Error) -> Self {
        Self::failed(format!("{what}: {error}"))
    }

    /// What the user can do about it. An earlier hint, closer to the cause, stays.
    pub(crate) fn or_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// What the user can do about it, whatever was said before.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same where this is what it was refused for: only the command knows what was given to it.
    pub(crate) fn with_hint_on(self, reason: RefusalReason, hint: &str) -> Self {
        match self.refusal == Some(reason) {
            true => self.with_hint(hint),
            false => self,
        }
    }

    /// Names the server if it is away or wrong. What one refuses, every other would refuse.
    pub(crate) fn at(self, endpoint: &str) -> Self {
        match self.exit {
            Exit::Dependency => self.while_doing(endpoint),
            _ => self,
        }
    }

    /// Says what was being done.
    pub(crate) fn while_doing(mut self, what: impl Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        wakelog_client::Error::from(status).into()
    }
}

impl From<wakelog_client::Error> for Error {
    fn from(error: wakelog_client::Error) -> Self {
        use wakelog_client::Error as Client;
        let exit = match &error {
            Client::Refused { code, .. } => exit_of_refusal(*code, error.refusal_reason()),
            Client::Unreachable { .. }
            | Client::Lost { .. }
            | Client::NoGrpc { .. }
            | Client::NoRelay { .. }
            | Client::GaveUp { .. } => Exit::Dependency,
            Client::Endpoint { .. } | Client::Token => Exit::Usage,
            Client::EmptyEntry | Client::TooLarge { .. } => Exit::Refused,
            Client::Source { .. }
            | Client::SourceChanged { .. }
            | Client::Sink(_)
            | Client::CutShort { .. }
            | Client::LengthMismatch { .. }
            | Client::DigestMismatch { .. }
            | Client::Protocol(_)
            | Client::WriterEnded { .. } => Exit::Failed,
        };
        let hint = match &error {
            Client::Refused { code, .. } => hint_of_refusal(*code, error.refusal_reason()),
            Client::Unreachable { .. } | Client::Lost { .. } => Some(
                "is `wakelog up`, or the service, running there? `wakelog doctor` looks at every dependency",
            ),
            Client::NoGrpc { .. } => {
                Some("is that the port of its pages? gRPC is on another one, by default 7420")
            }
            Client::NoRelay { .. } => {
                Some("name `wakelog ingest` with --relay, the reconstructor with --server")
            }
            Client::GaveUp { .. } => Some("`wakelog doctor` says what is away"),
            Client::CutShort { .. } | Client::LengthMismatch { .. } | Client::DigestMismatch { .. } => {
                Some("what was received is not used; try again, and run `wakelog verify` if it happens again")
            }
            _ => None,
        };
        Self {
            exit,
            message: with_sources(&error),
            hint: hint.map(str::to_owned),
            refusal: error.refusal_reason(),
        }
    }
}

/// An error and its causes in one sentence.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}

fn exit_of_refusal(code: Code, reason: Option<RefusalReason>) -> Exit {
    match reason {
        // The command line was right; what it was given is not taken.
        Some(RefusalReason::EmptyEntry | RefusalReason::TooLarge) => Exit::Refused,
        _ => exit_of(&Status::new(code, "")),
    }
}

fn hint_of_refusal(code: Code, reason: Option<RefusalReason>) -> Option<&'static str> {
    if code == Code::Unimplemented {
        return Some(
            "services that run alone serve one half each: --server names the reconstructor, --relay the ingest",
        );
    }
    match (code, reason?) {
        (_, RefusalReason::TokenMissing | RefusalReason::TokenForged) => Some(
            "give the server's caller token with --token-file (`wakelog up` keeps it as `caller-token` in its data folder)",
        ),
        (_, RefusalReason::SessionNotFound) => {
            Some("`wakelog sessions ls` lists the sessions that this token may see")
        }
        (_, RefusalReason::Superseded | RefusalReason::LifetimeFailed | RefusalReason::LifetimeEnded) => {
            Some(
                "another writer may hold the session now; `wakelog append --take-over` takes it back on purpose",
            )
        }
        (_, RefusalReason::BindLost) => Some("another resume was faster; try again"),
        (_, RefusalReason::SessionEmpty) => Some("nothing was written to this session yet"),
        (_, RefusalReason::StoreCorrupt) => {
            Some("run `wakelog verify`, and `wakelog segments verify` where there is an archive")
        }
        (Code::Unavailable | Code::ResourceExhausted, _) => {
            Some("try again in a moment; `wakelog doctor` says what is away")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
