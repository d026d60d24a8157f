//! Which entries are nowhere. Pure.

/// A range of entries, both ends included.
pub(super) type EntryRange = (u64, u64);

/// What the ranges say of the entries from one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// They hold all before this one.
    Held(u64),
    /// They hold none up to this one.
    Hole(u64),
}

/// Looks at the entries from `next` to `last`, of which each is in a range or nowhere. `ranges` are in any order and may overlap;
/// what comes behind them may be held by others, as long as none of those begins before one of these that begins behind `next`.
pub(super) fn step(next: u64, last: u64, ranges: &mut [EntryRange]) -> Step {
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
