//! What is remembered of a session.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use wakelog_model::SessionId;
use wakelog_proto::v1::AccessRole;

use crate::{Error, Lifetime, codec};

/// The fold's state of one session. The default is an unknown session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionState {
    pub(crate) opened: Option<Opened>,
    pub(crate) access: BTreeMap<String, AccessRole>,
    pub(crate) erased: bool,
    pub(crate) last_entry_seq: u64,
    pub(crate) last_checkpoint_seq: u64,
    pub(crate) lifetime: Option<Lifetime>,
}

/// How a session was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The account that owns the session.
    pub owner: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// For a sub-session, the session that it belongs to.
    pub parent: Option<SessionId>,
    /// For a sub-session, its place below the parent.
    pub subpath: String,
    /// The partition that the session is pinned to.
    pub partition: i32,
}

impl SessionState {
    /// The state as stored bytes: a `wakelog.v1.FoldState`. Equal states give equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Reads what [`SessionState::encode`] wrote, and nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        codec::decode(bytes)
    }

    /// SHA-256 of the stored bytes.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.encode()).into()
    }

    /// True once the session was opened, also when it is erased by now.
    pub fn is_known(&self) -> bool {
        self.opened.is_some()
    }

    /// True once the session is erased. (An erased root session is not seen here.)
    pub fn is_erased(&self) -> bool {
        self.erased
    }

    /// How the session was opened.
    pub fn opened(&self) -> Option<&Opened> {
        self.opened.as_ref()
    }

    /// Roles by account; an account without a role is absent.
    pub fn access(&self) -> &BTreeMap<String, AccessRole> {
        &self.access
    }

    /// The last complete entry; 0: none.
    pub fn last_entry_seq(&self) -> u64 {
        self.last_entry_seq
    }

    /// The last complete checkpoint; 0: none.
    pub fn last_checkpoint_seq(&self) -> u64 {
        self.last_checkpoint_seq
    }

    /// The current lifetime's generation; 0: no lifetime yet.
    pub fn generation(&self) -> u64 {
        self.lifetime.as_ref().map_or(0, Lifetime::generation)
    }

    /// The current lifetime.
    pub fn lifetime(&self) -> Option<&Lifetime> {
        self.lifetime.as_ref()
    }
}
