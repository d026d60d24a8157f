//! What a session, a lifetime, a writer's nonce and an idempotency key look like.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::Error;

/// A session's id: a UUID, always written in lower-case hyphenated form (it is also a record key and a part of
/// object keys).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub Uuid);

impl SessionId {
    /// The session that `request_id` of `account` opens. A retry opens the same one, and no request can name a
    /// session of another account.
    pub fn for_request(account: &str, request_id: &str) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"wakelog session\0");
        hasher.update((account.len() as u64).to_be_bytes());
        hasher.update(account.as_bytes());
        hasher.update(request_id.as_bytes());
        let hash = hasher.finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

impl FromStr for SessionId {
    type Err = Error;

    /// Takes the one written form only, so that one session has one key.
    fn from_str(text: &str) -> Result<Self, Error> {
        let not_an_id = || Error::SessionId {
            value: text.chars().take(80).collect(),
        };
        let uuid = Uuid::try_parse(text).map_err(|_| not_an_id())?;
        if uuid.hyphenated().to_string() != text {
            return Err(not_an_id());
        }
        Ok(Self(uuid))
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.hyphenated(), formatter)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SessionId({self})")
    }
}

macro_rules! id_of_16_bytes {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub [u8; 16]);

        impl $name {
            /// Reads the id from exactly 16 bytes.
            pub fn from_slice(bytes: &[u8]) -> Result<Self, Error> {
                bytes.try_into().map(Self).map_err(|_| Error::Length { what: $what, expected: 16, actual: bytes.len() })
            }

            /// The bytes.
            pub fn as_bytes(&self) -> &[u8] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&hex::encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

id_of_16_bytes!(
    /// A lifetime's id. It follows from the session, the request and the generation, so that a repeated bind is the
    /// same bind.
    LifetimeId,
    "lifetime id"
);

id_of_16_bytes!(
    /// 16 random bytes that a writer draws for one attachment.
    WriterNonce,
    "writer nonce"
);

impl LifetimeId {
    /// The lifetime that `request_id` binds as `generation` of the session.
    pub fn for_bind(session: SessionId, request_id: &str, generation: u64) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"wakelog lifetime\0");
        hasher.update(session.0.as_bytes());
        hasher.update(generation.to_be_bytes());
        hasher.update(request_id.as_bytes());
        let hash = hasher.finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Self(bytes)
    }
}

/// The wire's idempotency key: `<writer nonce, 32 hex digits>-<entry_seq>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The writer.
    pub nonce: WriterNonce,
    /// The entry within the lifetime.
    pub lifetime_seq: u64,
}

impl FromStr for IdempotencyKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let not_a_key = || Error::IdempotencyKey {
            value: text.chars().take(80).collect(),
        };
        let (nonce, seq) = text.split_once('-').ok_or_else(not_a_key)?;
        let nonce = hex::decode(nonce).map_err(|_| not_a_key())?;
        let nonce = WriterNonce::from_slice(&nonce).map_err(|_| not_a_key())?;
        let lifetime_seq = seq.parse().map_err(|_| not_a_key())?;
        let key = Self { nonce, lifetime_seq };
        if key.to_string() != text {
            return Err(not_a_key());
        }
        Ok(key)
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.nonce, self.lifetime_seq)
    }
}
