use super::*;

fn key(incarnation: u32, offset: u64) -> CoveredKey {
    CoveredKey {
        incarnation,
        partition: 0,
        offset,
    }
}

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
    let written = |next_offset, crc| covered_partition("topic", 0, key(1, 3), &now(next_offset, crc));
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

/// Invariant archived-is-complete: into a bucket without the states that the database believes are there nothing is written.
#[test]
fn archived_is_complete_the_bucket_holds_what_the_database_has_recorded() {
    let recorded = Coverage {
        incarnation: 2,
        covered_offset: 40,
    };
    let holds = |written: &[CoveredKey]| check_recorded(0, recorded, written).is_ok();
    assert!(holds(&[key(2, 40)]));
    assert!(holds(&[key(2, 30), key(2, 41)]), "another archiver has seen more");
    assert!(!holds(&[]), "an empty bucket");
    assert!(!holds(&[key(2, 39)]));
    assert!(!holds(&[key(1, 90)]), "of an earlier topic");
}

#[test]
fn coverage_is_written_down_only_where_it_rises() {
    let coverage = |incarnation, covered_offset| Coverage {
        incarnation,
        covered_offset,
    };
    assert!(rises(coverage(1, 9), coverage(1, 10)));
    assert!(rises(coverage(1, 9), coverage(2, 0)));
    assert!(!rises(coverage(1, 9), coverage(1, 9)));
    assert!(
        !rises(coverage(1, 9), coverage(1, 8)),
        "a session waits for its next state"
    );
    assert!(!rises(coverage(2, 0), coverage(1, 9)));
}
