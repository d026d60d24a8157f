//! The exit codes of the binary.
//!
//! | code | name | when |
//! |---|---|---|
//! | 0 | done | it did what was asked |
//! | 1 | failed | anything without a code of its own; what is stored does not fit together |
//! | 2 | usage | the command line or an argument in it is wrong |
//! | 3 | not found | the thing does not exist, or the caller may not have it |
//! | 4 | refused | fenced, aborted, conflict |
//! | 5 | dependency | a dependency is unreachable, too busy, or not what it should be |
//! | 6 | difference | a verification found one |

use std::process::ExitCode;

use tonic::{Code, Status};

/// The exit codes of the binary. They are a contract: scripts branch on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It did what was asked.
    Done = 0,
    /// Anything without a code of its own.
    Failed = 1,
    /// The command line or an argument in it is wrong.
    Usage = 2,
    /// The thing does not exist, or the caller may not have it.
    NotFound = 3,
    /// Fenced, aborted, conflict.
    Refused = 4,
    /// A dependency is unreachable, too busy, or not what it should be.
    Dependency = 5,
    /// A verification found a difference.
    Difference = 6,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The exit code that a status stands for.
pub fn exit_of(status: &Status) -> Exit {
    match status.code() {
        Code::Ok => Exit::Done,
        Code::InvalidArgument | Code::OutOfRange => Exit::Usage,
        Code::NotFound | Code::PermissionDenied | Code::Unauthenticated => Exit::NotFound,
        Code::FailedPrecondition | Code::Aborted | Code::AlreadyExists => Exit::Refused,
        // Unknown is what a broken connection becomes; our services never answer with it.
        Code::Unavailable
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Unimplemented
        | Code::Unknown => Exit::Dependency,
        Code::Internal | Code::DataLoss | Code::Cancelled => Exit::Failed,
    }
}

#[cfg(test)]
mod tests;
