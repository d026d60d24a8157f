//! Whether what was found is, of each lifetime in turn, a beginning of what its writer sent: all that was acknowledged, and
//! nothing that was sent after another writer had taken over.

use std::collections::BTreeSet;

use super::{FoundEntry, Sent, SentLifetime};

/// Where a lifetime's entries may end is not always one place: an entry may be sent twice, and then its bytes do not say which.
pub fn fits(sent: &Sent, history: &[FoundEntry]) -> bool {
    let mut ends = BTreeSet::from([0]);
    for lifetime in &sent.lifetimes {
        ends = ends
            .into_iter()
            .flat_map(|start| ends_of(lifetime, &history[start..]).map(move |count| start + count))
            .collect();
    }
    ends.contains(&history.len())
}

/// How many entries of this lifetime `rest` may begin with.
fn ends_of(lifetime: &SentLifetime, rest: &[FoundEntry]) -> impl Iterator<Item = usize> + use<> {
    let most = lifetime.fenced_at.unwrap_or(lifetime.entries.len());
    let equal = lifetime.entries[..most.min(lifetime.entries.len())]
        .iter()
        .zip(rest)
        .take_while(|(sent, found)| sent.bytes == found.bytes && sent.checkpoint == found.checkpoint)
        .count();
    lifetime.acked..=equal
}
