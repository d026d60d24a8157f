//! What was sent to a session, and what was acknowledged: the checker's only knowledge.

use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use wakelog_proto::v1::{AckLevel, LifetimeGrant};

use crate::checker::{Sent, SentEntry, SentLifetime};
use crate::support::seed::Entry;

/// One session.
pub struct Ledger {
    pub number: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    sent: Sent,
    /// The last lifetime, to name it when the next one is attached.
    last_lifetime: Bytes,
    /// What the product said was the session's last entry when each lifetime was bound.
    bases: Vec<u64>,
    next_number: u64,
    /// The last attachment was given up: who is current is not known.
    is_uncertain: bool,
}

impl Ledger {
    pub fn new(number: usize) -> Self {
        Self {
            number,
            kept: Mutex::default(),
        }
    }

    /// What acknowledgements of the session stand on. One that stands on the log alone cannot see a rival, so such a session
    /// has none.
    pub fn ack_level(&self) -> AckLevel {
        match self.number % 3 {
            0 => AckLevel::Log,
            _ => AckLevel::Store,
        }
    }

    pub fn session(&self) -> String {
        self.kept().sent.session.clone()
    }

    pub fn opened(&self, session: String) {
        self.kept().sent.session = session;
    }

    pub fn last_lifetime(&self) -> Bytes {
        self.kept().last_lifetime.clone()
    }

    pub fn is_uncertain(&self) -> bool {
        self.kept().is_uncertain
    }

    pub fn set_uncertain(&self) {
        self.kept().is_uncertain = true;
    }

    /// A number for the next entry.
    pub fn next_number(&self) -> u64 {
        let mut kept = self.kept();
        kept.next_number += 1;
        kept.next_number
    }

    /// Whether a body can be asked for: something was acknowledged.
    pub fn has_entries(&self) -> bool {
        self.kept()
            .sent
            .lifetimes
            .iter()
            .any(|lifetime| lifetime.acked > 0)
    }

    /// A lifetime was bound: what earlier ones send from now on may not be applied. Returns its number here.
    pub fn bound(&self, grant: &LifetimeGrant) -> usize {
        let mut kept = self.kept();
        for lifetime in &mut kept.sent.lifetimes {
            let sent = lifetime.entries.len();
            lifetime.fenced_at.get_or_insert(sent);
        }
        kept.sent.lifetimes.push(SentLifetime::default());
        kept.last_lifetime = grant.lifetime_id.clone();
        kept.bases.push(grant.base);
        kept.is_uncertain = false;
        kept.sent.lifetimes.len() - 1
    }

    pub fn sent(&self, lifetime: usize, entry: &Entry) {
        self.kept().sent.lifetimes[lifetime].entries.push(SentEntry {
            bytes: entry.bytes.clone(),
            checkpoint: entry.checkpoint,
        });
    }

    /// Entries of a lifetime up to this one are acknowledged; returns whether that is more than before.
    pub fn acked(&self, lifetime: usize, entries: u64) -> bool {
        let mut kept = self.kept();
        let lifetime = &mut kept.sent.lifetimes[lifetime];
        let is_more = entries as usize > lifetime.acked;
        lifetime.acked = lifetime.acked.max(entries as usize);
        is_more
    }

    /// What is kept of it so far.
    pub fn so_far(&self) -> Sent {
        self.kept().sent.clone()
    }

    /// The body that a resume must give that has just been bound: the product says how much of each lifetime there was, and
    /// that must be all that was acknowledged and no more than was sent.
    pub fn body_of_last_bind(&self) -> Result<Vec<u8>, String> {
        let kept = self.kept();
        let mut entries: Vec<&SentEntry> = Vec::new();
        for (number, bases) in kept.bases.windows(2).enumerate() {
            let lifetime = &kept.sent.lifetimes[number];
            let most = lifetime.fenced_at.unwrap_or(lifetime.entries.len());
            let applied = bases[1].checked_sub(bases[0]).map(|applied| applied as usize);
            let applied = applied.filter(|applied| (lifetime.acked..=most).contains(applied));
            let Some(applied) = applied else {
                return Err(format!(
                    "of lifetime {number} {} entries were acknowledged and {most} sent, and the binds around it say {bases:?}",
                    lifetime.acked
                ));
            };
            entries.extend(&lifetime.entries[..applied]);
        }
        let start = entries.iter().rposition(|entry| entry.checkpoint).unwrap_or(0);
        Ok(entries[start..]
            .iter()
            .flat_map(|entry| entry.bytes.to_vec())
            .collect())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("not poisoned")
    }
}
