//! What services and clients agree on beyond the messages: refusals, tokens and exit codes (DESIGN 11).
//!
//! | module | decision |
//! |---|---|
//! | [`refusal`] | how a refusal travels in a gRPC status, and which code each reason has |
//! | [`lifetime_token`] | how a lifetime token is signed and checked |
//! | [`caller_tokens`] | which account a caller token stands for |
//! | [`exit`] | the exit codes of the binary |

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod caller_tokens;
pub mod exit;
pub mod lifetime_token;
pub mod refusal;

pub use caller_tokens::{CallerTokens, bearer};
pub use exit::{Exit, exit_of};
pub use lifetime_token::{TokenError, TokenSigner};
pub use refusal::{RefusalBuilder, code_of, reason_name, reason_of, refusal_of, refuse};

/// Why a key or a token file cannot be used. No variant holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The signing key is too short to be safe.
    #[error("the token key has {actual} bytes, it must have at least {least}")]
    KeyTooShort {
        /// The bytes it has.
        actual: usize,
        /// The bytes it must have.
        least: usize,
    },
    /// The token file cannot be read.
    #[error("token file {path}: {reason}")]
    TokenFileUnreadable {
        /// The file.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// A line of the token file is not usable.
    #[error("token file line {line}: {problem}")]
    TokenFileLine {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A caller token that was given by itself is not usable.
    #[error("caller token: {problem}")]
    CallerToken {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The token file names no account, so every call would be refused.
    #[error("the token file holds no token")]
    NoTokens,
}
