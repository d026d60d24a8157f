//! What to call it if what was found is not what was sent.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Finding, FoundEntry, Sent};

/// An entry that was sent: its lifetime, and its place there.
type Tag = (usize, usize);

/// Gives each entry that was found the first sent one with its bytes that no other one has, and says what does not add up.
pub fn name(sent: &Sent, history: &[FoundEntry]) -> Vec<Finding> {
    let mut by_bytes: HashMap<(&[u8], bool), Vec<Tag>> = HashMap::new();
    for (lifetime, of) in sent.lifetimes.iter().enumerate().rev() {
        for (number, entry) in of.entries.iter().enumerate().rev() {
            let known = by_bytes
                .entry((entry.bytes.as_ref(), entry.checkpoint))
                .or_default();
            known.push((lifetime, number));
        }
    }
    let mut found = Found::default();
    for (entry, there) in (1..).zip(history) {
        match by_bytes.get_mut(&(there.bytes.as_ref(), there.checkpoint)) {
            None => found.foreign.push(entry),
            Some(left) => match left.pop() {
                None => found.findings.push(Finding::Doubled { entry }),
                Some(tag) => found.place(sent, entry, tag),
            },
        }
    }
    found.judge(sent)
}

#[derive(Default)]
struct Found {
    findings: Vec<Finding>,
    /// Places of entries that nobody sent.
    foreign: Vec<u64>,
    /// The sent entries that are there, each with its place.
    there: BTreeMap<Tag, u64>,
    /// The last of them so far.
    last: Option<Tag>,
}

impl Found {
    fn place(&mut self, sent: &Sent, entry: u64, tag: Tag) {
        let (lifetime, number) = tag;
        let is_fenced = sent.lifetimes[lifetime]
            .fenced_at
            .is_some_and(|fenced_at| number >= fenced_at);
        match self.last {
            _ if is_fenced => self.findings.push(Finding::BindIgnored { entry }),
            Some((last, _)) if lifetime < last => self.findings.push(Finding::BindIgnored { entry }),
            Some(last) if tag < last => self.findings.push(Finding::OutOfOrder { entry }),
            _ => self.last = Some(tag),
        }
        self.there.insert(tag, entry);
    }

    fn judge(mut self, sent: &Sent) -> Vec<Finding> {
        let mut foreign: BTreeSet<u64> = self.foreign.iter().copied().collect();
        let mut place = 0;
        for (lifetime, of) in sent.lifetimes.iter().enumerate() {
            let reached = self
                .there
                .range((lifetime, 0)..(lifetime + 1, 0))
                .map(|((_, number), _)| number + 1)
                .max()
                .unwrap_or(0);
            for number in 0..reached.max(of.acked) {
                if let Some(entry) = self.there.get(&(lifetime, number)) {
                    place = *entry;
                    continue;
                }
                place += 1;
                // What stands in its place is what has become of it.
                if foreign.remove(&place) {
                    self.findings.push(Finding::Altered { entry: place });
                } else if number < of.acked {
                    self.findings.push(Finding::Lost { entry: place });
                    place -= 1;
                } else {
                    self.findings.push(Finding::Gap { entry: place });
                    place -= 1;
                }
            }
        }
        let others = foreign.into_iter().map(|entry| Finding::Altered { entry });
        self.findings.extend(others);
        self.findings
    }
}
