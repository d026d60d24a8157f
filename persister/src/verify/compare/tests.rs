use std::collections::BTreeMap;

use bytes::Bytes;
use wakelog_model::{LifetimeId, part_digest};
use wakelog_store::{LifetimeRow, PartRow};

use super::{compare_lifetimes, compare_part, compare_quarantine};
use crate::testing::session;
use crate::verify::differences::Differences;
use crate::verify::refold::{ExpectedLifetime, ExpectedPart};

fn row() -> PartRow {
    let body = Bytes::from_static(b"an entry\n");
    PartRow {
        session: session(1),
        entry_seq: 4,
        part: 0,
        last: true,
        checkpoint: false,
        generation: 2,
        encoding: 1,
        plain_length: body.len() as u32,
        part_digest: part_digest(&body),
        body,
    }
}

fn expected() -> ExpectedPart {
    let row = row();
    ExpectedPart {
        checkpoint: row.checkpoint,
        last: row.last,
        generation: row.generation,
        plain_length: row.plain_length,
        part_digest: Some(row.part_digest),
    }
}

fn names(compare: impl FnOnce(&mut Differences)) -> Vec<&'static str> {
    let mut differences = Differences::new(3);
    compare(&mut differences);
    differences
        .into_listed()
        .iter()
        .map(|difference| difference.kind.name())
        .collect()
}

#[test]
fn a_part_is_compared_by_what_it_says_and_by_its_bytes() {
    let part = |expected, row: &PartRow| names(|found| compare_part(session(1), expected, row, found));
    assert!(part(Some(expected()), &row()).is_empty());
    assert_eq!(part(None, &row()), ["part"]);
    assert_eq!(
        part(
            Some(expected()),
            &PartRow {
                checkpoint: true,
                ..row()
            }
        ),
        ["part"]
    );
    assert_eq!(
        part(
            Some(expected()),
            &PartRow {
                generation: 1,
                ..row()
            }
        ),
        ["part"]
    );
    assert_eq!(
        part(
            Some(expected()),
            &PartRow {
                body: Bytes::from_static(b"an Entry\n"),
                ..row()
            }
        ),
        ["body"]
    );
    assert_eq!(
        part(
            Some(expected()),
            &PartRow {
                encoding: 77,
                ..row()
            }
        ),
        ["body"]
    );
    assert_eq!(
        part(
            Some(expected()),
            &PartRow {
                plain_length: 1,
                ..row()
            }
        ),
        ["part", "body"]
    );
}

#[test]
fn lifetimes_are_compared_one_by_one() {
    let lifetime = |applied_seq| ExpectedLifetime {
        lifetime_id: LifetimeId([1; 16]),
        request_id: "r".to_owned(),
        base: 0,
        body_start: 1,
        nonce: None,
        applied_seq,
        status: 1,
    };
    let row = |generation, applied_seq| LifetimeRow {
        session: session(1),
        generation,
        lifetime_id: LifetimeId([1; 16]),
        request_id: "r".to_owned(),
        base: 0,
        body_start: 1,
        nonce: None,
        applied_seq,
        status: 1,
        bound_at_ms: 0,
        current_generation: 3,
    };
    let expected = BTreeMap::from([(1, lifetime(5)), (2, lifetime(6)), (3, lifetime(7))]);
    let compare = |rows: &[LifetimeRow]| names(|found| compare_lifetimes(session(1), &expected, rows, found));
    assert!(compare(&[row(3, 7), row(2, 6), row(1, 5)]).is_empty());
    assert_eq!(compare(&[row(3, 7), row(2, 7), row(1, 5)]), ["lifetime"]);
    assert_eq!(
        compare(&[row(4, 0), row(3, 7), row(1, 5)]),
        ["lifetime", "lifetime"]
    );
}

#[test]
fn quarantine_is_compared_by_reason() {
    let expected = BTreeMap::from([("conflict", 2), ("unbound", 3), ("fenced", 1)]);
    let found = |counts: &[(&str, u64)]| {
        let counts = counts
            .iter()
            .map(|(reason, records)| ((*reason).to_owned(), *records))
            .collect();
        names(|differences| compare_quarantine(&expected, &counts, differences))
    };
    assert!(found(&[("conflict", 2), ("unbound", 3), ("fenced", 1)]).is_empty());
    assert!(
        found(&[
            ("conflict", 2),
            ("unbound", 1),
            ("wrong_partition", 2),
            ("fenced", 1)
        ])
        .is_empty()
    );
    assert_eq!(
        found(&[("conflict", 2), ("unbound", 2), ("fenced", 1)]),
        ["quarantine"]
    );
    assert_eq!(
        found(&[("conflict", 1), ("unbound", 3), ("malformed", 1)]).len(),
        3
    );
}
