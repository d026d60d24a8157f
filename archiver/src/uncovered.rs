//! Which entries no segment holds yet. Pure.

/// A range of entries, both ends included.
pub(crate) type EntryRange = (u64, u64);

/// The parts of `runs` that lie in none of `segments`. Both are ascending by their first entry; the runs do not overlap,
/// segments may.
pub(crate) fn uncovered(runs: &[EntryRange], segments: &[EntryRange]) -> Vec<EntryRange> {
    let mut left = Vec::new();
    for (first, last) in runs {
        let mut next = *first;
        for (min, max) in segments {
            if *max < next || min > last {
                continue;
            }
            if *min > next {
                left.push((next, *min - 1));
            }
            next = next.max(max.saturating_add(1));
        }
        if next <= *last {
            left.push((next, *last));
        }
    }
    left
}

#[cfg(test)]
mod tests;
