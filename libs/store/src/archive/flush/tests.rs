use uuid::Uuid;

use super::*;

fn object(min_entry_seq: u64, max_entry_seq: u64) -> ArchivedObject {
    ArchivedObject {
        key: "key".to_owned(),
        min_entry_seq,
        max_entry_seq,
        entries: max_entry_seq.wrapping_sub(min_entry_seq).wrapping_add(1),
        part_rows: 1,
        plain_bytes: 1,
        object_bytes: 1,
        object_digest: [0; 32],
    }
}

fn locked(last_entry_seq: u64, last_checkpoint_seq: u64) -> LockedSession {
    LockedSession {
        erased: false,
        last_entry_seq,
        last_checkpoint_seq,
    }
}

#[test]
fn the_kind_follows_the_checkpoint_and_never_includes_it() {
    let kind = |min, max| kind_of_prune(&object(min, max), locked(9, 5));
    assert_eq!(kind(1, 4).unwrap(), SegmentKind::Superseded);
    assert_eq!(kind(6, 9).unwrap(), SegmentKind::SafetyValve);
    for (min, max) in [(1, 5), (5, 5), (5, 9), (4, 6)] {
        let error = kind(min, max).unwrap_err();
        assert!(matches!(error, Error::Bug(_)), "{min} to {max}: {error}");
    }
    let without_checkpoint = kind_of_prune(&object(1, 3), locked(9, 0));
    assert_eq!(without_checkpoint.unwrap(), SegmentKind::SafetyValve);
}

#[test]
fn put_before_prune_only_whole_ranges_of_complete_entries() {
    let session = SessionId(Uuid::from_u128(1));
    let check = |object: &ArchivedObject| check_range(session, object, locked(9, 0));
    check(&object(1, 9)).unwrap();
    check(&object(9, 9)).unwrap();
    let with_a_hole = ArchivedObject {
        entries: 2,
        ..object(1, 3)
    };
    for wrong in [
        object(9, 10),
        object(0, 3),
        object(3, 2),
        object(1, u64::MAX),
        object(0, u64::MAX),
        with_a_hole,
    ] {
        let error = check(&wrong).unwrap_err();
        assert!(matches!(error, Error::Bug(_)), "{wrong:?}: {error}");
    }
}
