use wakelog_stream::Record;

use super::{Admission, Admitted};
use crate::start::RecordCheck;
use crate::status::StopReason;
use crate::testing::raw_record;

fn records(offsets: impl IntoIterator<Item = i64>) -> Vec<Record> {
    offsets
        .into_iter()
        .map(|offset| raw_record(offset, "key", b"value"))
        .collect()
}

fn checking(next_offset: i64) -> Admission {
    let crc = records([0])[0].crc();
    Admission::new(
        next_offset,
        Some(RecordCheck {
            offset: next_offset - 1,
            crc,
        }),
    )
}

#[test]
fn what_follows_is_folded_and_what_was_folded_is_not() {
    let mut admission = Admission::new(10, None);
    assert_eq!(admission.admit(&records(10..13)), Admitted::From(0));
    assert_eq!(admission.admit(&records(8..13)), Admitted::From(2));
    assert_eq!(admission.admit(&records(7..10)), Admitted::From(3));
    assert_eq!(admission.admit(&[]), Admitted::From(0));
    admission.advance(13);
    assert_eq!(admission.admit(&records(10..15)), Admitted::From(3));
}

#[test]
fn the_check_record_is_seen_and_not_folded() {
    let mut admission = checking(10);
    assert!(admission.is_check_pending());
    assert_eq!(
        admission.admit(&records(5..8)),
        Admitted::From(3),
        "it is still to come"
    );
    assert!(admission.is_check_pending());
    assert_eq!(admission.admit(&records(8..12)), Admitted::From(2));
    assert!(!admission.is_check_pending());
    assert_eq!(admission.admit(&records(10..12)), Admitted::From(0));

    let mut alone = checking(10);
    assert_eq!(alone.admit(&records([9])), Admitted::From(1));
    assert!(!alone.is_check_pending());
}

#[test]
fn another_record_in_its_place_is_another_log() {
    let mut admission = Admission::new(10, Some(RecordCheck { offset: 9, crc: 1 }));
    let Admitted::Stop(StopReason::LogReplaced {
        offset: 9,
        expected: 1,
        found: Some(_),
    }) = admission.admit(&records(9..12))
    else {
        panic!()
    };
    let mut admission = checking(10);
    let Admitted::Stop(StopReason::LogReplaced {
        offset: 9,
        found: None,
        ..
    }) = admission.admit(&records(10..12))
    else {
        panic!()
    };
}

#[test]
fn a_hole_is_never_papered_over() {
    let mut admission = Admission::new(10, None);
    for offsets in [vec![11, 12], vec![10, 12], vec![10, 11, 11], vec![8, 12]] {
        let admitted = admission.admit(&records(offsets.clone()));
        assert!(
            matches!(admitted, Admitted::Stop(StopReason::Unreadable { .. })),
            "{offsets:?}: {admitted:?}"
        );
    }
    let Admitted::Stop(StopReason::Unreadable { next_offset: 10, .. }) =
        checking(10).admit(&records([9, 11]))
    else {
        panic!()
    };
}
