//! When a token that expires at once is nobody's to mend: each relay has refused one that had just been made, and each server has
//! made one that was refused. Until then another relay, another server, or the same one later, may do better. Pure.

use std::collections::BTreeSet;

/// Tokens that were made since the last progress, by the numbers of relays and servers.
#[derive(Debug, Default)]
pub(super) struct FreshTokens {
    /// The server that made the one in use; `None`: it is an old one.
    made_by: Option<usize>,
    refusing_relays: BTreeSet<usize>,
    refused_servers: BTreeSet<usize>,
}

impl FreshTokens {
    /// A server has made the token that is in use from now on.
    pub(super) fn made(&mut self, server: usize) {
        self.made_by = Some(server);
    }

    /// A relay takes the token in use for an expired one. Whether it had just been made: a clock is wrong, the relay's or that of
    /// who made it.
    pub(super) fn refused(&mut self, relay: usize) -> bool {
        let Some(server) = self.made_by else {
            return false;
        };
        self.refusing_relays.insert(relay);
        self.refused_servers.insert(server);
        true
    }

    /// Whether every one of so many relays and servers has been tried in vain.
    pub(super) fn are_refused_everywhere(&self, relays: usize, servers: usize) -> bool {
        self.refusing_relays.len() >= relays && self.refused_servers.len() >= servers
    }
}
