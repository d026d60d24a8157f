//! Which state of a session is restored. Pure but for reading.
//!
//! | what can be read | its partition | decision |
//! |---|---|---|
//! | the newest state | starts at 0 | none: the topic has everything, and must reach as far |
//! | the newest state | starts above 0 | that one |
//! | an older one | starts at 0 | none, whatever is wrong with the newest |
//! | an older one, not older than the partition's start | starts above 0 | that one: it holds all below it, the topic the rest |
//! | an older one | starts above 0 | none can be used: what came between may be nowhere |
//! | none | nobody can say | as above, unless all partitions start at 0 |

use std::collections::BTreeMap;

use wakelog_archive::{ObjectName, ObjectStore, SnapshotKey};

use super::listing::Listed;
use super::state::{self, ArchivedState};
use crate::Error;

/// What becomes of a session.
pub(super) enum Choice {
    /// The topic has all of it, or nobody has any of it: that is found in the end.
    Nothing,
    /// The topic has all of it, and must reach as far as this state does.
    Topic(SnapshotKey, Box<ArchivedState>),
    /// This state is restored.
    State(SnapshotKey, Box<ArchivedState>),
    /// It needs a state, and none can be used: the newest one, and what is wrong with it.
    Unusable(SnapshotKey, String),
}

/// Where the partitions start that do not start at 0.
pub(super) struct Starts<'a> {
    pub(super) incarnation: u32,
    pub(super) offsets: &'a BTreeMap<i32, i64>,
}

pub(super) async fn choose(
    objects: &ObjectStore,
    topic: &str,
    listed: &Listed,
    starts: &Starts<'_>,
) -> Result<Choice, Error> {
    let mut wrong = None;
    for key in listed.states() {
        let read = state::read(objects, topic, key).await?;
        match (read, &wrong) {
            (Ok(archived), None) => return Ok(of_newest(key, archived, starts)),
            (Ok(archived), Some(_)) => match of_older(key, archived, starts) {
                Some(choice) => return Ok(choice),
                None => break,
            },
            (Err(_), Some(_)) => {}
            (Err(reason), None) => wrong = Some((key, reason)),
        }
    }
    Ok(match wrong {
        Some((key, reason)) if !starts.offsets.is_empty() => Choice::Unusable(key, reason),
        _ => Choice::Nothing,
    })
}

fn of_newest(key: SnapshotKey, archived: ArchivedState, starts: &Starts<'_>) -> Choice {
    match starts.offsets.contains_key(&archived.partition()) {
        true => Choice::State(key, Box::new(archived)),
        false => Choice::Topic(key, Box::new(archived)),
    }
}

/// `None`: it can't be used.
fn of_older(key: SnapshotKey, archived: ArchivedState, starts: &Starts<'_>) -> Option<Choice> {
    let Some(start) = starts.offsets.get(&archived.partition()) else {
        return Some(Choice::Nothing);
    };
    let holds_what_is_gone = key.incarnation == starts.incarnation && archived.next_offset() >= *start;
    holds_what_is_gone.then(|| Choice::State(key, Box::new(archived)))
}

impl Choice {
    /// The object that can't be used, and why.
    pub(super) fn unusable(&self) -> Option<(String, &str)> {
        match self {
            Self::Unusable(key, reason) => Some((ObjectName::State(*key).to_string(), reason)),
            Self::Nothing | Self::Topic(..) | Self::State(..) => None,
        }
    }
}

#[cfg(test)]
mod tests;
