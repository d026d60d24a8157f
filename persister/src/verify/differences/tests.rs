use std::collections::BTreeSet;

use super::Differences;
use crate::testing::session;
use crate::verify::report::{DifferenceKind, MAX_LISTED};

#[test]
fn all_are_counted_and_some_listed() {
    let mut differences = Differences::new(3);
    for n in 0..150 {
        differences.add(Some(session(n)), DifferenceKind::State, "a", "b");
    }
    assert_eq!(differences.count(), 150);
    let listed = differences.into_listed();
    assert_eq!(listed.len(), MAX_LISTED);
    assert_eq!((listed[0].partition, listed[0].session), (3, Some(session(0))));
}

#[test]
fn what_is_taken_back_makes_room() {
    let mut differences = Differences::new(3);
    for n in 0..100 {
        differences.add(Some(session(n)), DifferenceKind::State, "a", "b");
    }
    differences.take_back(&BTreeSet::from([session(0), session(1), session(200)]));
    assert_eq!(differences.count(), 98);
    differences.add(None, DifferenceKind::LastRecord, "a", "b");
    differences.add(Some(session(1)), DifferenceKind::Session, "a", "b");
    differences.add(Some(session(2)), DifferenceKind::Session, "a", "b");
    assert_eq!(differences.count(), 101);
    assert_eq!(differences.into_listed().len(), MAX_LISTED);
}
