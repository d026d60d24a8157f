use wakelog_store::SegmentKind;

use super::*;
use crate::fixtures::session;

fn segment(min: u64, max: u64) -> SegmentRow {
    SegmentRow {
        session: session(),
        key: format!("{min}-{max}"),
        min_entry_seq: min,
        max_entry_seq: max,
        kind: SegmentKind::SafetyValve,
        entries: max - min + 1,
        plain_bytes: 1,
        object_bytes: 1,
        object_digest: [0; 32],
        archived_at_ms: 0,
    }
}

fn plan(segments: &[(u64, u64)], first: u64, last: u64) -> Vec<(String, u64, u64)> {
    let segments: Vec<SegmentRow> = segments.iter().map(|(min, max)| segment(*min, *max)).collect();
    let pieces = pieces(&segments, first, last).into_iter();
    pieces
        .map(|piece| (piece.segment.key, piece.first, piece.last))
        .collect()
}

fn piece(key: &str, first: u64, last: u64) -> (String, u64, u64) {
    (key.to_owned(), first, last)
}

#[test]
fn pieces_follow_each_other_without_a_hole() {
    assert_eq!(
        plan(&[(1, 5), (6, 9)], 3, 8),
        [piece("1-5", 3, 5), piece("6-9", 6, 8)]
    );
    assert_eq!(plan(&[(1, 9)], 3, 8), [piece("1-9", 3, 8)]);
    assert_eq!(plan(&[(1, 9)], 9, 9), [piece("1-9", 9, 9)]);
}

#[test]
fn of_segments_that_overlap_the_one_that_reaches_farthest_is_read() {
    assert_eq!(
        plan(&[(1, 4), (2, 3), (3, 9), (4, 6)], 2, 9),
        [piece("1-4", 2, 4), piece("3-9", 5, 9)]
    );
}

#[test]
fn where_no_segment_goes_on_the_plan_ends() {
    assert_eq!(plan(&[(1, 3), (6, 9)], 2, 9), [piece("1-3", 2, 3)]);
    assert_eq!(plan(&[(6, 9)], 2, 9), []);
    assert_eq!(plan(&[], 2, 9), []);
}
