use proptest::prelude::*;

use super::*;

#[test]
fn what_segments_hold_is_left_out() {
    assert_eq!(uncovered(&[(1, 9)], &[]), [(1, 9)]);
    assert_eq!(uncovered(&[(1, 9)], &[(1, 9)]), []);
    assert_eq!(uncovered(&[(1, 9)], &[(3, 4)]), [(1, 2), (5, 9)]);
    assert_eq!(uncovered(&[(1, 9)], &[(1, 4), (2, 3), (4, 6)]), [(7, 9)]);
    assert_eq!(uncovered(&[(3, 4), (8, 9)], &[(1, 3), (9, 20)]), [(4, 4), (8, 8)]);
    assert_eq!(uncovered(&[], &[(1, 3)]), []);
}

proptest! {
    #[test]
    fn every_entry_is_either_covered_or_left_and_never_both(
        starts in prop::collection::vec((1_u64..60, 0_u64..9), 0..6),
        cuts in prop::collection::vec((1_u64..8, 1_u64..8), 0..5),
    ) {
        let mut segments: Vec<EntryRange> = starts.iter().map(|(first, more)| (*first, first + more)).collect();
        segments.sort_unstable();
        let (mut runs, mut next) = (Vec::new(), 1);
        for (hole, length) in cuts {
            runs.push((next + hole, next + hole + length));
            next += hole + length + 1;
        }
        let left = uncovered(&runs, &segments);
        let within = |ranges: &[EntryRange], entry: u64| ranges.iter().any(|(first, last)| (*first..=*last).contains(&entry));
        for entry in 0..100 {
            let expected = within(&runs, entry) && !within(&segments, entry);
            prop_assert_eq!(within(&left, entry), expected, "entry {}", entry);
        }
        prop_assert!(left.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }
}
