use bytes::Bytes;
use wakelog_proto::v1::AccessRole;
use wakelog_proto::v1::session_record::Record as Variant;

use super::all_of;
use crate::testing::{Harness, access, bound, entry, erased, log_record, opened, raw_record, session};

#[test]
fn erasing_takes_the_parts_of_its_own_batch_and_keeps_the_tombstone() {
    let one = session(1);
    let mut harness = Harness::default();
    harness.batch(&all_of(
        1,
        vec![opened(None), bound(one, 1), entry(one, 1, 1, b'a')],
    ));
    let writes = harness.batch(&all_of(
        1,
        vec![
            access("bob", AccessRole::Subscriber),
            entry(one, 1, 2, b'b'),
            erased(),
            entry(one, 1, 3, b'c'),
            erased(),
        ],
    ));
    assert_eq!(writes.erased, [one]);
    assert!(writes.parts.is_empty());
    assert_eq!(
        writes.access.iter().map(|write| write.role).collect::<Vec<_>>(),
        [0]
    );
    assert!(writes.sessions[0].erased);
    assert!(writes.quarantined.is_empty());
    assert!(harness.store.parts.is_empty());

    harness.die();
    let writes = harness.batch(&all_of(
        1,
        vec![entry(one, 1, 4, b'd'), bound(one, 2), opened(None)],
    ));
    assert!(writes.is_empty());
}

#[test]
fn erasing_reaches_sub_sessions_at_any_depth_in_the_same_batch() {
    let (root, child, grandchild) = (session(1), session(2), session(3));
    let mut harness = Harness::default();
    let writes = harness.batch(&[
        (root, opened(None)),
        (child, opened(Some(root))),
        (grandchild, opened(Some(child))),
        (grandchild, bound(grandchild, 1)),
        (grandchild, entry(grandchild, 1, 1, b'a')),
        (root, erased()),
        (grandchild, entry(grandchild, 1, 2, b'b')),
        (session(4), opened(Some(grandchild))),
        (grandchild, erased()),
    ]);
    assert!(writes.parts.is_empty() && writes.quarantined.is_empty());
    assert_eq!(writes.erased, [root, grandchild]);
    assert_eq!(
        writes.sessions.len(),
        3,
        "the session that was opened below an erased one is none"
    );
    assert!(harness.store.gone.contains(&child));
}

#[test]
fn erasing_a_root_reaches_sub_sessions_that_are_remembered_from_before() {
    let (root, child) = (session(1), session(2));
    let mut harness = Harness::default();
    harness.batch(&[
        (root, opened(None)),
        (child, opened(Some(root))),
        (child, bound(child, 1)),
    ]);
    harness.batch(&[(root, erased())]);
    let writes = harness.batch(&[(child, entry(child, 1, 1, b'a'))]);
    assert!(writes.is_empty());
    harness.die();
    let writes = harness.batch(&[(child, entry(child, 1, 1, b'a'))]);
    assert!(writes.is_empty(), "{writes:?}");
}

#[test]
fn nothing_of_an_erased_session_is_kept_whatever_is_wrong_with_it() {
    let one = session(1);
    let mut harness = Harness::default();
    harness.batch(&all_of(1, vec![opened(None), bound(one, 1), erased()]));
    let mut flipped = entry(one, 1, 1, b'a');
    if let Some(Variant::EntryPart(part)) = &mut flipped.record {
        part.part_digest = Bytes::from_static(&[7; 16]);
    }
    let writes = harness.batch_of(vec![
        raw_record(3, &one.to_string(), b"\xff\xff"),
        log_record(4, one, &flipped),
        log_record(5, one, &entry(one, 1, 1, b'a')),
    ]);
    assert!(writes.is_empty(), "{writes:?}");
}
