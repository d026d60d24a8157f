//! Which account a caller token stands for, and how a token travels.

use std::fmt;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use tonic::metadata::MetadataMap;
use wakelog_model::limits::MAX_ACCOUNT_BYTES;

use crate::Error;

#[cfg(test)]
mod tests;

/// The shortest caller token. Shorter ones can be guessed.
pub const MIN_CALLER_TOKEN_BYTES: usize = 16;

/// The longest caller token: it travels in a header.
pub const MAX_CALLER_TOKEN_BYTES: usize = 512;

/// Caller tokens and their accounts. Only digests of the tokens are kept.
#[derive(Clone)]
pub struct CallerTokens {
    accounts: Vec<([u8; 32], String)>,
}

impl CallerTokens {
    /// Reads a token file: one `account token` per line, separated by blanks; `#` starts a comment line. An account may
    /// have several tokens, so that one can be replaced without an outage.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| Error::TokenFileUnreadable {
            path: path.display().to_string(),
            reason: error.to_string(),
        })?;
        Self::from_text(&text)
    }

    /// Reads the contents of a token file.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        let mut tokens = Self { accounts: Vec::new() };
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let on_this_line = |problem| Error::TokenFileLine {
                line: index + 1,
                problem,
            };
            let mut words = line.split_whitespace();
            let (Some(account), Some(token), None) = (words.next(), words.next(), words.next()) else {
                return Err(on_this_line("it must be `account token`"));
            };
            tokens.add(token, account).map_err(on_this_line)?;
        }
        if tokens.accounts.is_empty() {
            return Err(Error::NoTokens);
        }
        Ok(tokens)
    }

    /// One token for one account.
    pub fn single(token: &str, account: &str) -> Result<Self, Error> {
        let mut tokens = Self { accounts: Vec::new() };
        tokens
            .add(token, account)
            .map_err(|problem| Error::CallerToken { problem })?;
        Ok(tokens)
    }

    /// The account that a token stands for. Takes the same time for every token, known or not.
    pub fn account_of(&self, token: &str) -> Option<&str> {
        let digest = digest_of(token);
        let mut found = None;
        for (known, account) in &self.accounts {
            if equal_in_constant_time(known, &digest) {
                found = Some(account.as_str());
            }
        }
        found
    }

    fn add(&mut self, token: &str, account: &str) -> Result<(), &'static str> {
        if account.is_empty() || account.len() > MAX_ACCOUNT_BYTES {
            return Err("an account has 1 to 128 bytes");
        }
        if account.contains('\0') {
            return Err("an account holds no NUL");
        }
        if !(MIN_CALLER_TOKEN_BYTES..=MAX_CALLER_TOKEN_BYTES).contains(&token.len()) {
            return Err("a token has 16 to 512 bytes");
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token is printable ASCII without blanks");
        }
        let digest = digest_of(token);
        if self.accounts.iter().any(|(known, _)| *known == digest) {
            return Err("this token was already given");
        }
        self.accounts.push((digest, account.to_owned()));
        Ok(())
    }
}

impl fmt::Debug for CallerTokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CallerTokens({} secret)", self.accounts.len())
    }
}

/// The token of `authorization: Bearer <token>`; `None` if there is none.
pub fn bearer(metadata: &MetadataMap) -> Option<&str> {
    let value = metadata.get("authorization")?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn digest_of(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn equal_in_constant_time(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let difference = one
        .iter()
        .zip(other)
        .fold(0, |difference, (a, b)| difference | (a ^ b));
    std::hint::black_box(difference) == 0
}
