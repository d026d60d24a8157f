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
    let nothing = Coverage {
        incarnation: 1,
        covered_offset: 0,
    };
    assert!(check_recorded(0, nothing, &[]).is_ok(), "nothing rests on it");
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

/// Invariant archived-is-complete: nobody vouches for what another one has covered.
#[test]
fn archived_is_complete_only_what_this_database_has_covered_is_written_anew() {
    let coverage = |incarnation, covered_offset| Coverage {
        incarnation,
        covered_offset,
    };
    let ours = |key, recorded| is_ours(key, recorded, coverage(1, 14));
    assert!(ours(key(1, 14), None));
    assert!(
        ours(key(1, 20), Some(coverage(1, 20))),
        "a session waits for its next state"
    );
    assert!(!ours(key(1, 15), None));
    assert!(
        !ours(key(1, 100), Some(coverage(1, 20))),
        "a database restored from a backup"
    );
    assert!(!ours(key(2, 3), None));
    assert!(!ours(key(2, 3), Some(coverage(1, 20))));
}

#[test]
fn a_coverage_object_is_read_as_a_rebuild_reads_it() {
    let good = covered_partition("topic", 0, key(1, 3), &now(9, Some(7)));
    let bytes = |covered: &CoveredPartition| Bytes::from(covered.encode_to_vec());
    assert_eq!(
        read(key(1, 3), bytes(&good)).unwrap(),
        Read::Covered(good.clone())
    );
    let unreadable = [
        read(key(1, 4), bytes(&good)),
        read(
            key(1, 3),
            bytes(&covered_partition("topic", 0, key(1, 3), &now(2, None))),
        ),
        read(key(1, 3), Bytes::from_static(b"covered\n")),
    ];
    for read in unreadable {
        assert_eq!(read.unwrap(), Read::Unreadable);
    }
    let newer = CoveredPartition { format: 2, ..good };
    let newer = read(key(1, 3), bytes(&newer));
    assert!(
        matches!(newer, Err(Error::NewerCoverage { format: 2, .. })),
        "{newer:?}"
    );
}
