//! What a segment takes, and what it refuses.

use wakelog_archive::{Error, SegmentWriter, SpoolOptions, verify_spool};
use wakelog_model::limits::PART_SIZE;

use crate::support::{head, noise, session};

fn writer() -> SegmentWriter {
    SegmentWriter::new(session(), SpoolOptions::default()).unwrap()
}

#[test]
fn archived_is_complete_so_a_hole_is_refused() {
    let mut writer = writer();
    writer.begin_entry(head(3)).unwrap();
    writer.append_part(b"three").unwrap();
    for entry_seq in [0, 2, 3, 5] {
        let error = writer.begin_entry(head(entry_seq)).unwrap_err();
        assert!(
            matches!(error, Error::OutOfOrder { expected: 4, found } if found == entry_seq),
            "{error}"
        );
    }
    // What was refused has changed nothing.
    writer.begin_entry(head(4)).unwrap();
    writer.append_part(b"four").unwrap();
    let segment = writer.finish().unwrap();
    assert_eq!((segment.min_entry_seq, segment.max_entry_seq), (3, 4));
    verify_spool(&segment.key, &segment.spool).unwrap();
}

#[test]
fn numbers_start_at_one_and_end_before_the_last() {
    for entry_seq in [0, u64::MAX] {
        let error = writer().begin_entry(head(entry_seq)).unwrap_err();
        assert!(matches!(error, Error::OutOfOrder { .. }), "{error}");
    }
}

#[test]
fn parts_that_no_entry_can_have_are_refused() {
    let mut writer = writer();
    assert!(matches!(writer.append_part(b"x"), Err(Error::Bug(_))));
    writer.begin_entry(head(1)).unwrap();
    let malformed = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(
            matches!(error, Error::EntryMalformed { entry_seq: 1, .. }),
            "{error}"
        );
    };
    malformed(writer.append_part(b""));
    malformed(writer.append_part(&vec![0; PART_SIZE + 1]));
    malformed(writer.begin_entry(head(2)));
    writer.append_part(&vec![1; PART_SIZE]).unwrap();
    writer.append_part(b"the last one").unwrap();
    malformed(writer.append_part(b"one more"));
    assert_eq!(writer.finish().unwrap().parts, 2);
}

#[test]
fn a_segment_has_an_entry_and_an_entry_has_bytes() {
    assert!(matches!(writer().finish(), Err(Error::SegmentEmpty)));
    let mut writer = writer();
    writer.begin_entry(head(1)).unwrap();
    assert!(matches!(
        writer.finish(),
        Err(Error::EntryMalformed { entry_seq: 1, .. })
    ));
}

#[test]
fn a_segment_is_full_after_so_many_entries() {
    let mut writer = writer();
    for entry_seq in 1..=10_000 {
        assert!(!writer.is_full());
        writer.begin_entry(head(entry_seq)).unwrap();
        writer.append_part(b"x").unwrap();
    }
    assert!(writer.is_full());
    let error = writer.begin_entry(head(10_001)).unwrap_err();
    assert!(
        matches!(error, Error::SegmentFull { entry_seq: 10_001 }),
        "{error}"
    );
    let segment = writer.finish().unwrap();
    assert_eq!(segment.entries, 10_000);
    verify_spool(&segment.key, &segment.spool).unwrap();
}

#[test]
fn an_entry_larger_than_a_segment_makes_a_larger_one() {
    let part = noise(PART_SIZE, 9);
    let mut writer = writer();
    writer.begin_entry(head(1)).unwrap();
    writer.append_part(b"small").unwrap();
    writer.begin_entry(head(2)).unwrap();
    for _ in 0..80 {
        writer.append_part(&part).unwrap();
    }
    assert!(writer.is_full());
    assert!(matches!(
        writer.begin_entry(head(3)),
        Err(Error::SegmentFull { entry_seq: 3 })
    ));
    let segment = writer.finish().unwrap();
    assert_eq!(segment.plain_bytes, 5 + 80 * PART_SIZE as u64);
    assert!(segment.spool.is_in_file(), "memory holds all of it");
    let verified = verify_spool(&segment.key, &segment.spool).unwrap();
    assert_eq!(verified.plain_bytes, segment.plain_bytes);
}

#[test]
fn a_writer_whose_spool_failed_seals_nothing() {
    let options = SpoolOptions {
        folder: Some("/does/not/exist".into()),
        memory_bytes: 0,
    };
    let mut writer = SegmentWriter::new(session(), options).unwrap();
    writer.begin_entry(head(1)).unwrap();
    writer.append_part(&noise(PART_SIZE, 1)).unwrap();
    let error = writer.append_part(&noise(PART_SIZE, 2)).unwrap_err();
    assert!(matches!(error, Error::Spool(_)), "{error}");
    assert!(writer.finish().is_err());
}
