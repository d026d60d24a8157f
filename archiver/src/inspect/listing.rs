//! The objects of sessions as a listing finds them: a page at a time, and the states of a session together.

use std::time::SystemTime;

use wakelog_archive::{ObjectInfo, ObjectName, SegmentKey, SnapshotKey};
use wakelog_model::SessionId;

/// A segment that was listed.
#[derive(Debug, Clone)]
pub(super) struct ListedSegment {
    pub(super) key: SegmentKey,
    pub(super) name: String,
    pub(super) last_modified: Option<SystemTime>,
}

/// A state, or the parts that belong to one.
#[derive(Debug, Clone)]
pub(super) struct ListedState {
    pub(super) key: SnapshotKey,
    pub(super) is_state: bool,
    pub(super) name: String,
    pub(super) last_modified: Option<SystemTime>,
}

/// What a page holds, apart from states, which are collected until the session's last one was listed.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    pub(super) segments: Vec<ListedSegment>,
    pub(super) foreign: Vec<String>,
    /// The states of sessions that were listed as a whole; an archiver keeps a few of each.
    pub(super) states: Vec<Vec<ListedState>>,
}

/// The states of the session that the listing is in.
#[derive(Debug, Default)]
pub(super) struct StatesSoFar {
    states: Vec<ListedState>,
}

impl StatesSoFar {
    /// Sorts a page, which follows the ones before.
    pub(super) fn sort(&mut self, page: Vec<ObjectInfo>) -> Sorted {
        let mut sorted = Sorted::default();
        for object in page {
            let ObjectInfo {
                key: name,
                last_modified,
                ..
            } = object;
            match ObjectName::parse(&name) {
                ObjectName::Segment(key) => sorted.segments.push(ListedSegment {
                    key,
                    name,
                    last_modified,
                }),
                ObjectName::State(key) | ObjectName::Parts(key) => {
                    if self.session().is_some_and(|session| session != key.session) {
                        sorted.states.extend(self.take());
                    }
                    self.states.push(ListedState {
                        key,
                        is_state: matches!(ObjectName::parse(&name), ObjectName::State(_)),
                        name,
                        last_modified,
                    });
                }
                ObjectName::Covered(_) | ObjectName::Erased(_) | ObjectName::Unknown(_) => {
                    sorted.foreign.push(name);
                }
            }
        }
        sorted
    }

    /// The states of the last session, once the listing has ended.
    pub(super) fn take(&mut self) -> Option<Vec<ListedState>> {
        (!self.states.is_empty()).then(|| std::mem::take(&mut self.states))
    }

    fn session(&self) -> Option<SessionId> {
        self.states.first().map(|state| state.key.session)
    }
}
