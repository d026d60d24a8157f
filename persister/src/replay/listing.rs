//! The archive's objects of sessions, a session at a time.

use std::pin::Pin;

use futures::{Stream, TryStreamExt as _};
use wakelog_archive::{
    ObjectInfo, ObjectName, ObjectStore, SESSIONS_PREFIX, SegmentKey, SnapshotKey, session_prefix,
};
use wakelog_model::SessionId;

use crate::Error;

/// What is listed of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) session: SessionId,
    states: Vec<SnapshotKey>,
    /// With the sizes of the objects, by first entry.
    pub(super) segments: Vec<(SegmentKey, u64)>,
}

impl Listed {
    fn new(session: SessionId) -> Self {
        Self {
            session,
            states: Vec::new(),
            segments: Vec::new(),
        }
    }

    /// The state of the latest offset of the latest incarnation.
    pub(super) fn newest_state(&self) -> Option<SnapshotKey> {
        self.states.iter().max().copied()
    }

    /// All of them, the newest first.
    pub(super) fn states(&self) -> Vec<SnapshotKey> {
        let mut states = self.states.clone();
        states.sort_unstable_by(|a, b| b.cmp(a));
        states
    }

    /// Whether segments hold all entries up to this one.
    pub(super) fn reaches(&self, last: u64) -> bool {
        let mut ranges: Vec<(u64, u64)> = self
            .segments
            .iter()
            .map(|(key, _)| (key.min_entry_seq, key.max_entry_seq))
            .collect();
        ranges.sort_unstable();
        let held = ranges.iter().fold(0, |held, (min, max)| match *min <= held + 1 {
            true => held.max(*max),
            false => held,
        });
        held >= last
    }

    /// The last entry that a segment holds.
    pub(super) fn last_entry(&self) -> Option<u64> {
        self.segments.iter().map(|(key, _)| key.max_entry_seq).max()
    }

    fn take(&mut self, name: ObjectName, bytes: u64) {
        match name {
            ObjectName::State(key) => self.states.push(key),
            ObjectName::Segment(key) => self.segments.push((key, bytes)),
            // Parts are found by their state; what is not ours is `segments verify`'s to report.
            ObjectName::Parts(_)
            | ObjectName::Covered(_)
            | ObjectName::Erased(_)
            | ObjectName::Unknown(_) => {}
        }
    }
}

/// The sessions of a listing, by id. A page of names and one session's are in memory.
pub(super) struct Sessions {
    objects: Pin<Box<dyn Stream<Item = Result<ObjectInfo, wakelog_archive::Error>> + Send>>,
    open: Option<Listed>,
}

impl Sessions {
    pub(super) fn new(objects: &ObjectStore) -> Self {
        Self::below(objects, SESSIONS_PREFIX)
    }

    /// The one session.
    pub(super) fn only(objects: &ObjectStore, session: SessionId) -> Self {
        Self::below(objects, &session_prefix(session))
    }

    fn below(objects: &ObjectStore, prefix: &str) -> Self {
        Self {
            objects: Box::pin(objects.list(prefix, None)),
            open: None,
        }
    }

    /// The next session; `None` after the last one.
    pub(super) async fn next(&mut self) -> Result<Option<Listed>, Error> {
        while let Some(object) = self.objects.try_next().await? {
            let name = ObjectName::parse(&object.key);
            let Some(session) = name.session() else {
                continue;
            };
            let mut done = None;
            let mut open = match self.open.take() {
                Some(open) if open.session == session => open,
                other => {
                    done = other;
                    Listed::new(session)
                }
            };
            open.take(name, object.bytes);
            self.open = Some(open);
            if done.is_some() {
                return Ok(done);
            }
        }
        Ok(self.open.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::session;

    /// Invariant archived-is-complete: what was put after a page was listed is found by another look.
    #[test]
    fn archived_is_complete_only_where_segments_reach_the_last_entry() {
        let listed = |ranges: &[(u64, u64)]| Listed {
            session: session(1),
            states: Vec::new(),
            segments: ranges
                .iter()
                .map(|(min, max)| (SegmentKey::new(session(1), *min, *max, &[0; 32]), 1))
                .collect(),
        };
        assert!(listed(&[]).reaches(0));
        assert!(!listed(&[]).reaches(1));
        assert!(listed(&[(5, 9), (1, 4)]).reaches(9));
        assert!(!listed(&[(5, 9), (1, 4)]).reaches(10));
        assert!(!listed(&[(1, 4), (6, 9)]).reaches(9));
        assert!(listed(&[(1, 4), (12, 15), (2, 20)]).reaches(20));
    }
}
