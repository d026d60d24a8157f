use std::collections::BTreeSet;

use super::Refold;
use crate::decode::decode;
use crate::testing::{PARTITION, bound, entry, entry_part, erased, log_record, opened, raw_record, session};

#[test]
fn what_a_delta_touches_is_named_with_what_it_erases() {
    let (root, child, other) = (session(1), session(2), session(3));
    let mut refold = Refold::new(PARTITION);
    let records = [
        (root, opened(None)),
        (child, opened(Some(root))),
        (child, bound(child, 1)),
        (child, entry(child, 1, 1, b'a')),
        (other, opened(None)),
    ];
    for ((of, record), offset) in records.iter().zip(0..) {
        refold.take(&decode(&log_record(offset, *of, record)));
    }
    assert_eq!(refold.take_touched(), BTreeSet::from([root, child, other]));
    assert_eq!((refold.next_offset(), refold.parts()), (5, 1));

    refold.take(&decode(&log_record(5, root, &erased())));
    assert_eq!(
        refold.take_touched(),
        BTreeSet::from([root, child]),
        "the child's parts are gone with it"
    );
    assert_eq!(refold.parts(), 0);

    refold.take(&decode(&raw_record(6, "no session", b"")));
    refold.take(&decode(&raw_record(7, &child.to_string(), b"\xff")));
    assert_eq!(
        refold
            .quarantined()
            .iter()
            .map(|(reason, n)| (*reason, *n))
            .collect::<Vec<_>>(),
        [("undecodable", 1)]
    );
    assert_eq!(refold.opened_sessions(), BTreeSet::from([root, child, other]));
}

#[test]
fn discarded_parts_are_not_expected_and_every_lifetime_is() {
    let one = session(1);
    let mut refold = Refold::new(PARTITION);
    let records = [
        opened(None),
        bound(one, 1),
        entry(one, 1, 1, b'a'),
        entry_part(one, 1, 2, (0, 2), false, b'b'),
        bound(one, 2),
        entry(one, 2, 1, b'c'),
    ];
    for (record, offset) in records.iter().zip(0..) {
        refold.take(&decode(&log_record(offset, one, record)));
    }
    let expected = refold.session(one).unwrap();
    let parts: Vec<_> = expected
        .parts
        .iter()
        .map(|((seq, part), row)| (*seq, *part, row.generation))
        .collect();
    assert_eq!(parts, [(1, 0, 1), (2, 0, 2)]);
    let lifetimes: Vec<_> = expected
        .lifetimes
        .iter()
        .map(|(n, row)| (*n, row.base, row.applied_seq))
        .collect();
    assert_eq!(lifetimes, [(1, 0, 1), (2, 1, 1)]);
}
