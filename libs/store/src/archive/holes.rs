//! Which complete entries are neither in the hot tail nor in a segment (archived-is-complete): none, as long as nothing is lost.

use uuid::Uuid;
use wakelog_model::SessionId;

use super::first_id;
use crate::error::{During, convert};
use crate::numbers::count;
use crate::{Error, Store};

/// Runs and segments that are looked at a time.
const RUNS: u32 = 1_000;
const SEGMENTS: u32 = 1_000;

/// A range of entries, both ends included.
type EntryRange = (u64, u64);

/// What the ranges say of the entries from one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// They hold all before this one.
    Held(u64),
    /// They hold none up to this one.
    Hole(u64),
}

impl Store {
    /// The entries of the session from `from` up to `last`, a complete one, that are nowhere, as first and last entry; `limit` of
    /// such ranges and no more. Archivers may go on meanwhile: rows are asked before the manifest.
    pub async fn missing_entries(
        &self,
        session: SessionId,
        from: u64,
        last: u64,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, Error> {
        let mut missing = Vec::new();
        let mut next = from;
        while next <= last && missing.len() < limit {
            let mut ranges = self.hot_runs(session, next, last, RUNS).await?;
            let segments = self.segments_overlapping(session, next, last, SEGMENTS).await?;
            // What lies behind the last of a full page is looked at with the next one.
            let is_full = count(segments.len()) == u64::from(SEGMENTS);
            let seen_to = segments.last().filter(|_| is_full);
            let seen_to = seen_to.map_or(u64::MAX, |segment| segment.min_entry_seq);
            ranges.retain(|(first, _)| *first <= seen_to);
            ranges.extend(
                segments
                    .iter()
                    .map(|segment| (segment.min_entry_seq, segment.max_entry_seq)),
            );
            next = match step(next, last, &mut ranges) {
                Step::Held(held) => held,
                Step::Hole(end) => {
                    missing.push((next, end));
                    end + 1
                }
            };
        }
        Ok(missing)
    }

    /// All sessions by id, erased ones as well, those after `after`; `limit` of them.
    pub async fn sessions_page(&self, after: Option<SessionId>, limit: u32) -> Result<Vec<SessionId>, Error> {
        let Some(from) = first_id(after) else {
            return Ok(Vec::new());
        };
        let mut connection = self.acquire().await?;
        let ids: Vec<Uuid> = sqlx::query_scalar(
            "SELECT session_id FROM agent_sessions WHERE session_id >= $1 ORDER BY session_id LIMIT $2",
        )
        .bind(from)
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(During::Statement("sessions"), error))?;
        Ok(ids.into_iter().map(SessionId).collect())
    }
}

/// Looks at the entries from `next` to `last`, of which each is in a range or nowhere. `ranges` are in any order and may overlap;
/// what comes behind them may be held by others, as long as none of those begins before one of these that begins behind `next`.
fn step(next: u64, last: u64, ranges: &mut [EntryRange]) -> Step {
    ranges.sort_unstable();
    let mut held = next;
    for (first, end) in ranges.iter() {
        if *first > held {
            break;
        }
        held = held.max(end.saturating_add(1));
    }
    if held > next {
        return Step::Held(held);
    }
    let begins = ranges.iter().map(|(first, _)| *first).find(|first| *first > next);
    Step::Hole(begins.map_or(last, |first| (first - 1).min(last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archived_is_complete_where_ranges_touch_or_overlap() {
        assert_eq!(step(1, 9, &mut [(5, 9), (1, 4)]), Step::Held(10));
        assert_eq!(step(1, 9, &mut [(1, 6), (2, 3), (4, 9)]), Step::Held(10));
        assert_eq!(step(4, 9, &mut [(1, 6)]), Step::Held(7));
        assert_eq!(step(4, 9, &mut [(1, u64::MAX)]), Step::Held(u64::MAX));
    }

    #[test]
    fn no_silent_gap_each_hole_has_its_ends() {
        assert_eq!(step(1, 9, &mut []), Step::Hole(9));
        assert_eq!(step(1, 9, &mut [(3, 4)]), Step::Hole(2));
        assert_eq!(step(1, 9, &mut [(1, 2), (5, 9)]), Step::Held(3));
        assert_eq!(step(3, 9, &mut [(1, 2), (5, 9)]), Step::Hole(4));
        assert_eq!(step(7, 9, &mut [(1, 6), (20, 30)]), Step::Hole(9));
    }
}
