//! The fields of an `EntryPart`.

use bytes::Bytes;
use wakelog_fold::{Malformed, Outcome, Reason};
use wakelog_model::limits::{MAX_PARTS, PART_SIZE};
use wakelog_proto::v1::EntryPart;

use super::{changed, check, malformed};
use crate::bench::{Bench, gap, stored};
use crate::records::{ANNE, bind, delta, entry};

#[test]
fn ids_and_digests_of_a_part_have_16_bytes() {
    type Field = fn(&mut EntryPart) -> &mut Bytes;
    let fields: [(&str, Field); 4] = [
        ("lifetime_id", |part| &mut part.lifetime_id),
        ("writer_nonce", |part| &mut part.writer_nonce),
        ("part_digest", |part| &mut part.part_digest),
        ("entry_digest", |part| &mut part.entry_digest),
    ];
    for (field, bytes_of) in fields {
        for actual in [0, 15, 17] {
            let mut part = delta(&bind(1, "request"), ANNE, 1, "a");
            *bytes_of(&mut part) = vec![1; actual].into();
            check(
                &part,
                &Malformed::Length {
                    field,
                    expected: 16,
                    actual,
                },
            );
        }
    }
}

#[test]
fn numbers_of_a_part_are_checked() {
    let good = delta(&bind(1, "request"), ANNE, 1, "a");
    let with = |change: fn(&mut EntryPart)| changed(&good, change);
    let bad = [
        (
            with(|part| part.lifetime_seq = 0),
            Malformed::SequenceOutOfRange { lifetime_seq: 0 },
        ),
        (
            with(|part| part.lifetime_seq = 1 << 63),
            Malformed::SequenceOutOfRange {
                lifetime_seq: 1 << 63,
            },
        ),
        (
            with(|part| part.lifetime_seq = u64::MAX),
            Malformed::SequenceOutOfRange {
                lifetime_seq: u64::MAX,
            },
        ),
        (
            with(|part| part.generation = 0),
            Malformed::GenerationOutOfRange { generation: 0 },
        ),
        (
            with(|part| part.generation = 1 << 63),
            Malformed::GenerationOutOfRange { generation: 1 << 63 },
        ),
        (
            with(|part| part.part = 2048),
            Malformed::PartOutOfRange {
                part: 2048,
                limit: 2048,
            },
        ),
        (
            with(|part| part.part = u32::MAX),
            Malformed::PartOutOfRange {
                part: u32::MAX,
                limit: 2048,
            },
        ),
        (
            with(|part| part.encoding = 0),
            Malformed::UnknownEncoding { number: 0 },
        ),
        (
            with(|part| part.encoding = 3),
            Malformed::UnknownEncoding { number: 3 },
        ),
        (
            with(|part| part.encoding = -1),
            Malformed::UnknownEncoding { number: -1 },
        ),
        (with(|part| part.part_count = 0), Malformed::PartCountMissing),
    ];
    for (record, reason) in &bad {
        check(record, reason);
    }
    assert!(
        Malformed::UnknownEncoding { number: 3 }
            .to_string()
            .starts_with("unknown encoding")
    );
    let (mut bench, _) = Bench::bound();
    assert_eq!(bench.fold(&with(|part| part.part = MAX_PARTS - 1)), gap(1, 0));
    assert_eq!(bench.fold(&with(|part| part.encoding = 2)), stored(1, 0, true));
}

#[test]
fn lengths_of_a_part_are_checked() {
    let parts = entry(&bind(1, "request"), ANNE, 1, false, &["a", "b"]);
    let with_length =
        |part: usize, length: usize| changed(&parts[part], |part| part.plain_length = length as u32);
    for (number, lengths) in [
        (0, [0, 1, PART_SIZE - 1, PART_SIZE + 1]),
        (1, [0, PART_SIZE + 1, 1 << 20, 1 << 31]),
    ] {
        for length in lengths {
            let (part, last, plain_length) = (number as u32, number == 1, length as u32);
            check(
                &with_length(number, length),
                &Malformed::PlainLength {
                    part,
                    last,
                    plain_length,
                },
            );
        }
    }
    for length in [1, PART_SIZE] {
        let (mut bench, _) = Bench::bound();
        bench.apply(&[parts[0].clone(), with_length(1, length)]);
    }
}

#[test]
fn bodies_of_a_part_are_checked() {
    let good = delta(&bind(1, "request"), ANNE, 1, "a");
    let with_body = |length: usize| changed(&good, |part| part.body = vec![7; length].into());
    let limit = PART_SIZE + 65_536;
    check(&with_body(0), &Malformed::BodyEmpty);
    check(
        &with_body(limit + 1),
        &Malformed::BodyTooLong {
            limit,
            actual: limit + 1,
        },
    );
    let (mut bench, _) = Bench::bound();
    bench.apply(&[with_body(limit)]);
}

#[test]
fn only_the_last_part_says_what_the_entry_is() {
    let first = entry(&bind(1, "request"), ANNE, 1, false, &["a", "b"]).remove(0);
    let counted = changed(&first, |part| part.part_count = 2);
    check(&counted, &Malformed::PartCountUnexpected { part_count: 2 });
    for length in [1, 16] {
        let digested = changed(&first, |part| part.entry_digest = vec![1; length].into());
        check(&digested, &Malformed::EntryDigestUnexpected);
    }
}

#[test]
fn the_generation_of_a_part_is_its_lifetimes() {
    let (mut bench, lifetime) = Bench::bound();
    let second = bench.bind(2);
    for actual in [1, 3] {
        let part = changed(&delta(&second, ANNE, 1, "a"), |part| part.generation = actual);
        assert_eq!(
            bench.fold(&part),
            malformed(Malformed::GenerationNotTheLifetimes { expected: 2, actual })
        );
    }
    // A part of another lifetime that claims this generation, or a later one, is not fenced but unbound.
    for claimed in [2, 3] {
        let part = changed(&delta(&lifetime, ANNE, 1, "a"), |part| part.generation = claimed);
        assert_eq!(bench.fold(&part), Outcome::Quarantined(Reason::Unbound));
    }
}
