use super::*;

fn key(incarnation: u32, partition: u32, offset: u64) -> CoveredKey {
    CoveredKey {
        incarnation,
        partition,
        offset,
    }
}

#[test]
fn the_newest_offset_of_the_newest_incarnation_counts() {
    let mut names = Names::none();
    for (incarnation, partition, offset) in [(1, 0, 70), (1, 0, 30), (1, 1, 9), (2, 0, 5), (1, 0, 90)] {
        names.take(key(incarnation, partition, offset));
    }
    assert_eq!(names.incarnation, 2);
    assert_eq!(names.newest, BTreeMap::from([(0, key(2, 0, 5))]));
}

/// Invariant archived-is-complete: an object that does not say of which log it is covers nothing.
#[test]
fn archived_is_complete_a_coverage_object_says_what_its_name_says() {
    let good = CoveredPartition {
        format: 1,
        topic: "topic".to_owned(),
        incarnation: 2,
        partition: 3,
        covered_offset: 40,
        next_offset: 44,
        last_record_crc: Some(7),
    };
    let read = |covered: &CoveredPartition| decode(key(2, 3, 40), covered.encode_to_vec().into());
    let covered = read(&good).unwrap();
    assert_eq!((covered.next_offset, covered.last_record_crc), (44, Some(7)));
    let spoils: [fn(&mut CoveredPartition); 5] = [
        |covered| covered.format = 2,
        |covered| covered.incarnation = 1,
        |covered| covered.partition = -3,
        |covered| covered.covered_offset = 41,
        |covered| covered.next_offset = 39,
    ];
    for spoil in spoils {
        let mut bad = good.clone();
        spoil(&mut bad);
        assert!(read(&bad).is_err(), "{bad:?}");
    }
    let earlier = decode(key(2, 3, 40), Bytes::from_static(b"covered\n"));
    assert!(earlier.is_err(), "{earlier:?}");
}
