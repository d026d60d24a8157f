use wakelog_store::Coverage;

use super::*;

fn now(next_offset: u64, last_record_crc: Option<u32>) -> CoverageNow {
    CoverageNow {
        coverage: Coverage {
            incarnation: 1,
            covered_offset: 3,
        },
        next_offset,
        last_record_crc,
    }
}

/// Invariant archived-is-complete: the coverage of another log is not taken for this one's, nor replaced by it.
#[test]
fn archived_is_complete_coverage_of_another_log_is_told_apart() {
    let written = |next_offset, crc| covered_partition("topic", 0, &now(next_offset, crc));
    let fits = |written: &CoveredPartition, now: &CoverageNow| is_of_this_log(written, "topic", now);
    assert!(fits(&written(9, Some(7)), &now(9, Some(7))), "rebuilt to its end");
    assert!(
        fits(&written(9, Some(7)), &now(12, Some(8))),
        "rebuilt and gone on"
    );
    assert!(
        fits(&written(9, None), &now(9, Some(7))),
        "nobody knows the record"
    );
    assert!(!fits(&written(9, Some(7)), &now(9, Some(8))), "another record");
    assert!(!fits(&written(9, Some(7)), &now(8, Some(7))), "not folded so far");
    let other = CoveredPartition {
        topic: "other".to_owned(),
        ..written(9, Some(7))
    };
    assert!(!fits(&other, &now(12, Some(8))));
}
