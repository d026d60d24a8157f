//! Whether a session is what was sent: nothing lost, doubled or altered.
//!
//! It knows what its writers have sent and what was acknowledged to them, and what was found at the end. It shares no code with
//! the product, and does nothing itself: no call, no file, no clock.
//!
//! | module | what it decides |
//! |---|---|
//! | `placing` | whether the entries that were found are beginnings of what each writer sent, one after the other |
//! | `diagnosis` | what to call it if they are not |
//! | `cases` | made-up sessions with each fault |

pub mod cases;
mod diagnosis;
mod placing;

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

/// An entry as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentEntry {
    pub bytes: Bytes,
    pub checkpoint: bool,
}

/// What one writer sent in its lifetime.
#[derive(Debug, Clone, Default)]
pub struct SentLifetime {
    /// In order.
    pub entries: Vec<SentEntry>,
    /// How many of them, from the first on, were acknowledged.
    pub acked: usize,
    /// How many of them were sent when another writer had taken over: later ones may never be applied.
    pub fenced_at: Option<usize>,
}

/// What was sent to one session.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    pub session: String,
    /// In the order in which they were bound.
    pub lifetimes: Vec<SentLifetime>,
}

/// What somebody who asks for something gets: the thing, or why not.
pub type Answer<T> = Result<T, String>;

/// An entry as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundEntry {
    pub entry_seq: u64,
    pub checkpoint: bool,
    pub bytes: Bytes,
}

/// Which entries the database says that it has, or that the archive has.
#[derive(Debug, Clone, Default)]
pub struct Holdings {
    /// The last entry of the session.
    pub last_entry: u64,
    /// Entries with a row in the hot tail, and whether all parts of each are there.
    pub hot: BTreeMap<u64, bool>,
    /// First and last entry of each segment.
    pub segments: Vec<(u64, u64)>,
}

/// What was found of one session.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Every entry that it ever had.
    pub history: Answer<Vec<FoundEntry>>,
    /// The body, by each way that was tried.
    pub bodies: Vec<(&'static str, Answer<Bytes>)>,
    pub holdings: Holdings,
}

/// What is wrong with a session. Entries are named by their place in the session, from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// An acknowledged entry is not there.
    Lost { entry: u64 },
    /// Acknowledged entries before everything in the hot tail are in no segment: somebody pruned them.
    PrunedWithoutSegment { first: u64, last: u64 },
    /// An entry is there more often than it was sent.
    Doubled { entry: u64 },
    /// What is there was never sent.
    Altered { entry: u64 },
    /// An entry is there before one that was sent before it.
    OutOfOrder { entry: u64 },
    /// An entry that was not acknowledged is missing, and a later one of the same writer is there.
    Gap { entry: u64 },
    /// An entry of a writer is there that it sent when another one had taken over, or after entries of that one.
    BindIgnored { entry: u64 },
    /// Entries do not count 1, 2, 3 ….
    Miscounted { entry: u64 },
    /// It could not be read.
    Unreadable { what: &'static str, why: String },
    /// A body is not that of the entries.
    OtherBody {
        what: &'static str,
        length: u64,
        expected: u64,
    },
    /// More was acknowledged than was sent, or something was acknowledged to a writer that had been superseded.
    AckedTooMuch { lifetime: usize },
    /// It differs, and nothing above says how.
    Unexplained,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self:?}")
    }
}

/// What the checker says of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    pub sent: u64,
    pub acked: u64,
    /// Entries that were found.
    pub found: u64,
    pub bodies: u64,
    pub findings: Vec<Finding>,
}

/// Checks one session.
pub fn check(sent: &Sent, observed: &Observed) -> Verdict {
    let mut findings = Vec::new();
    for (number, lifetime) in sent.lifetimes.iter().enumerate() {
        let most = lifetime.fenced_at.unwrap_or(lifetime.entries.len());
        if lifetime.acked > most {
            findings.push(Finding::AckedTooMuch { lifetime: number });
        }
    }
    let found = match &observed.history {
        Ok(history) => {
            findings.extend(of_history(sent, history));
            findings.extend(of_bodies(history, &observed.bodies));
            history.len()
        }
        Err(why) => {
            findings.push(Finding::Unreadable {
                what: "history",
                why: why.clone(),
            });
            findings.extend(unreadable_bodies(&observed.bodies));
            0
        }
    };
    findings.extend(of_holdings(sent, &observed.holdings));
    findings.sort_unstable();
    findings.dedup();
    Verdict {
        sent: sum(sent, |lifetime| lifetime.entries.len()),
        acked: sum(sent, |lifetime| lifetime.acked),
        found: found as u64,
        bodies: observed.bodies.len() as u64,
        findings,
    }
}

fn sum(sent: &Sent, of: impl Fn(&SentLifetime) -> usize) -> u64 {
    sent.lifetimes.iter().map(|lifetime| of(lifetime) as u64).sum()
}

fn of_history(sent: &Sent, history: &[FoundEntry]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = (1..)
        .zip(history)
        .filter(|(number, entry)| entry.entry_seq != *number)
        .map(|(entry, _)| Finding::Miscounted { entry })
        .take(1)
        .collect();
    if !placing::fits(sent, history) {
        let named = diagnosis::name(sent, history);
        findings.extend(match named.is_empty() {
            true => vec![Finding::Unexplained],
            false => named,
        });
    }
    findings
}

/// Each body is the last checkpoint's bytes and each later delta's.
fn of_bodies(history: &[FoundEntry], bodies: &[(&'static str, Answer<Bytes>)]) -> Vec<Finding> {
    let start = history.iter().rposition(|entry| entry.checkpoint).unwrap_or(0);
    let expected: Vec<u8> = history[start..]
        .iter()
        .flat_map(|entry| entry.bytes.iter().copied())
        .collect();
    let mut findings = unreadable_bodies(bodies);
    for (what, body) in bodies {
        if let Ok(body) = body
            && *body != expected
        {
            findings.push(Finding::OtherBody {
                what,
                length: body.len() as u64,
                expected: expected.len() as u64,
            });
        }
    }
    findings
}

fn unreadable_bodies(bodies: &[(&'static str, Answer<Bytes>)]) -> Vec<Finding> {
    let unreadable = bodies.iter().filter_map(|(what, body)| {
        let why = body.as_ref().err()?.clone();
        Some(Finding::Unreadable { what, why })
    });
    unreadable.collect()
}

/// Every entry of the session is in the hot tail with all of its parts, or in a segment.
fn of_holdings(sent: &Sent, holdings: &Holdings) -> Vec<Finding> {
    let acked = sum(sent, |lifetime| lifetime.acked);
    let is_archived = |entry: u64| {
        holdings
            .segments
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&entry))
    };
    let first_hot = holdings.hot.keys().next().copied().unwrap_or(u64::MAX);
    let (mut findings, mut pruned): (Vec<Finding>, Vec<u64>) = (Vec::new(), Vec::new());
    for entry in 1..=acked.max(holdings.last_entry) {
        if holdings.hot.get(&entry) == Some(&true) || is_archived(entry) {
            continue;
        }
        // What an archiver takes are the oldest ones.
        match entry < first_hot {
            true => pruned.push(entry),
            false => findings.push(Finding::Lost { entry }),
        }
    }
    if let (Some(first), Some(last)) = (pruned.first(), pruned.last()) {
        findings.push(Finding::PrunedWithoutSegment {
            first: *first,
            last: *last,
        });
    }
    findings
}
