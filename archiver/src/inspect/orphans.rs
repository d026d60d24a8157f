//! Which of the objects that a listing finds nothing records. The manifest is asked after the listing: what is recorded in
//! between is known.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, SystemTime};

use wakelog_archive::{SESSIONS_PREFIX, session_prefix};
use wakelog_model::SessionId;

use super::Inspection;
use super::kept::{StateId, kept_states};
use super::listing::{ListedSegment, ListedState, StatesSoFar};
use super::report::{Finding, InspectProgress, InspectReport, What};
use crate::Error;

/// The age below which an object that was announced counts as staged, where nothing is deleted.
const USUAL_AGE: Duration = Duration::from_secs(3600);

impl Inspection<'_> {
    pub(super) async fn find_orphans(
        &self,
        report: &mut InspectReport,
        progress: &mut impl FnMut(InspectProgress),
    ) -> Result<(), Error> {
        let prefix = self
            .session
            .map_or_else(|| SESSIONS_PREFIX.to_owned(), session_prefix);
        let mut last: Option<String> = None;
        let mut states = StatesSoFar::default();
        loop {
            let page = self.objects.list_page(&prefix, last.as_deref()).await?;
            report.objects += page.objects.len() as u64;
            progress(InspectProgress {
                segments: report.segments,
                objects: report.objects,
            });
            last = page.objects.last().map(|object| object.key.clone());
            let mut sorted = states.sort(page.objects);
            if !page.more {
                sorted.states.extend(states.take());
            }
            for key in sorted.foreign {
                report.add(finding(key, None, What::Foreign, "its name is not one of ours"));
            }
            self.look_at_segments(sorted.segments, report).await?;
            for of_session in sorted.states {
                self.look_at_states(of_session, report).await?;
            }
            if !page.more {
                return Ok(());
            }
        }
    }

    async fn look_at_segments(
        &self,
        listed: Vec<ListedSegment>,
        report: &mut InspectReport,
    ) -> Result<(), Error> {
        let names: Vec<String> = listed.iter().map(|segment| segment.name.clone()).collect();
        let known = self.store.known_objects(&names).await?;
        let mut staged: HashMap<SessionId, HashMap<String, Duration>> = HashMap::new();
        for segment in listed {
            if known.contains(&segment.name) {
                continue;
            }
            let session = segment.key.session;
            let ages = match staged.entry(session) {
                Entry::Occupied(ages) => ages.into_mut(),
                Entry::Vacant(absent) => absent.insert(self.staged_ages(session).await?),
            };
            let announced = ages.get(&segment.name);
            let is_staged = announced.is_some_and(|age| *age < self.age());
            let (what, detail) = match is_staged {
                true => (What::Staged, "an archiver has announced it".to_owned()),
                false => self.delete_segment(&segment).await?,
            };
            report.add(finding(segment.name, Some(session), what, detail));
        }
        Ok(())
    }

    /// How long ago each object of the session was announced. What is condemned is being deleted, and nobody can record it.
    async fn staged_ages(&self, session: SessionId) -> Result<HashMap<String, Duration>, Error> {
        let rows = self.store.staged_objects(session).await?;
        let announced = rows.into_iter().filter(|row| !row.condemned);
        Ok(announced.map(|row| (row.key, row.age)).collect())
    }

    /// The states of one session, all of them.
    async fn look_at_states(
        &self,
        listed: Vec<ListedState>,
        report: &mut InspectReport,
    ) -> Result<(), Error> {
        let Some(session) = listed.first().map(|state| state.key.session) else {
            return Ok(());
        };
        let id_of = |state: &ListedState| -> StateId { (state.key.incarnation, state.key.offset) };
        let rows = self.store.snapshots(session).await?;
        let recorded: Vec<StateId> = rows
            .iter()
            .map(|row| (row.incarnation, row.next_offset))
            .collect();
        if listed.iter().all(|state| recorded.contains(&id_of(state))) {
            return Ok(());
        }
        let tails = self.store.hot_tails(&[session]).await?;
        let is_erased = tails.iter().any(|tail| tail.erased);
        // Of an erased session nothing is about to be recorded.
        let there: Vec<StateId> = listed
            .iter()
            .filter(|state| state.is_state && !is_erased)
            .map(id_of)
            .collect();
        let kept = kept_states(&recorded, &there);
        let newest = there.iter().max();
        for state in listed {
            // Parts are put before their state, and may be about to have it.
            let is_ahead = !is_erased && newest.is_none_or(|newest| id_of(&state) > *newest);
            if kept.contains(&id_of(&state)) || is_ahead {
                continue;
            }
            let (what, detail) = self
                .delete_state(session, &state.name, state.last_modified)
                .await?;
            report.add(finding(state.name, Some(session), what, detail));
        }
        Ok(())
    }

    /// The age above which an orphan is not on its way any more.
    pub(super) fn age(&self) -> Duration {
        self.delete_older_than.unwrap_or(USUAL_AGE)
    }
}

/// Whether the object store wrote it longer ago than that. Without a time it counts as new.
pub(super) fn is_older(last_modified: Option<SystemTime>, age: Duration) -> bool {
    let elapsed = last_modified.and_then(|time| SystemTime::now().duration_since(time).ok());
    elapsed.is_some_and(|elapsed| elapsed >= age)
}

fn finding(key: String, session: Option<SessionId>, what: What, detail: impl Into<String>) -> Finding {
    Finding {
        key,
        session,
        what,
        detail: detail.into(),
    }
}
