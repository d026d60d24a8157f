//! The invariants of DESIGN 3, over random worlds. The checks themselves are the oracle's, at every step; the tests
//! here say which of them a world is run for, and that the worlds reach what they are meant to.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use wakelog_fold::{Change, ConflictKind, Outcome, Reason};
use wakelog_model::{Digest16, decode_part, encode_part, split_parts};

use crate::bench::{Bench, stored};
use crate::records::{ANNE, bind, entry};
use crate::world::{World, plan};

/// `cases` unless the environment asks for another number.
pub(crate) fn config(cases: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    Config {
        cases: asked.unwrap_or(cases),
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config(512))]

    /// Short worlds, which shrink well: acked-is-durable, exactly-once-fold, no-silent-gap, one-writer,
    /// resume-is-current and byte-exact are all checked by the oracle with every record.
    #[test]
    fn acked_is_durable_exactly_once_fold_no_silent_gap_one_writer_in_short_worlds(plan in plan(40)) {
        World::run(&plan);
    }
}

proptest! {
    #![proptest_config(config(192))]

    /// Long worlds: many lifetimes, windows that are left behind.
    #[test]
    fn resume_is_current_byte_exact_in_long_worlds(plan in plan(250)) {
        World::run(&plan);
    }
}

/// A property test that never gets anywhere proves nothing.
#[test]
fn the_worlds_reach_every_outcome() {
    let mut runner = TestRunner::deterministic();
    let mut counts = BTreeMap::<String, u32>::new();
    for _ in 0..150 {
        let plan = plan(150).new_tree(&mut runner).unwrap().current();
        let world = World::run(&plan);
        for outcome in &world.outcomes {
            *counts.entry(kind(outcome)).or_default() += 1;
        }
    }
    let kinds = [
        "opened",
        "access",
        "bound",
        "bound, discards",
        "part",
        "entry",
        "ended",
        "erased",
        "duplicate",
        "stale",
        "gap",
        "bind lost",
        "end ignored",
        "erased session",
        "malformed",
        "wrong_partition",
        "session_conflict",
        "unbound",
        "fenced",
        "lifetime_failed",
        "second_writer",
        "CheckpointFlag",
        "PartCount",
        "EntryDigest",
        "PartAltered",
        "EntryAltered",
    ];
    for kind in kinds {
        assert!(
            counts.get(kind).is_some_and(|count| *count >= 5),
            "{kind} is too rare: {counts:#?}"
        );
    }
    assert_eq!(counts.len(), kinds.len(), "{counts:#?}");
}

fn kind(outcome: &Outcome) -> String {
    let kind = match outcome {
        Outcome::Applied(Change::SessionOpened) => "opened",
        Outcome::Applied(Change::AccessChanged { .. }) => "access",
        Outcome::Applied(Change::LifetimeBound {
            discarded_entry_seq: None,
        }) => "bound",
        Outcome::Applied(Change::LifetimeBound { .. }) => "bound, discards",
        Outcome::Applied(Change::PartStored {
            completes_entry: false,
            ..
        }) => "part",
        Outcome::Applied(Change::PartStored { .. }) => "entry",
        Outcome::Applied(Change::LifetimeEnded) => "ended",
        Outcome::Applied(Change::SessionErased) => "erased",
        Outcome::Duplicate { stale: false } => "duplicate",
        Outcome::Duplicate { stale: true } => "stale",
        Outcome::Gap { .. } => "gap",
        Outcome::BindLost { .. } => "bind lost",
        Outcome::EndIgnored => "end ignored",
        Outcome::ErasedSession => "erased session",
        Outcome::Quarantined(Reason::Conflict(kind)) => return format!("{kind:?}"),
        Outcome::Quarantined(reason) => reason.name(),
    };
    kind.to_owned()
}

/// Real parts, encoded as a producer does it, read back as a resume does it.
#[test]
fn byte_exact_an_entry_of_real_parts_comes_back_as_it_was() {
    let plain: Vec<u8> = (0..1_300_000_u32)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8 & 0x1f)
        .collect();
    let plain = bytes::Bytes::from(plain);
    let (mut bench, lifetime) = Bench::bound();
    let bodies: Vec<_> = split_parts(&plain).collect();
    assert_eq!(bodies.len(), 3);
    let mut parts = entry(&lifetime, ANNE, 1, true, &bodies);
    for part in &mut parts {
        let (encoding, body) = encode_part(&part.body);
        (part.encoding, part.body) = (encoding as i32, body);
    }
    let mut read = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        assert_eq!(bench.fold(part), stored(1, number as u32, part.last));
        let digest = Digest16::from_slice(&part.part_digest).unwrap();
        read.extend_from_slice(
            &decode_part(part.encoding, &part.body, part.plain_length as usize, digest).unwrap(),
        );
    }
    assert!(read == plain);
    bench.bind(2);
    assert_eq!((bench.lifetime().body_start(), bench.lifetime().base()), (1, 1));
}

/// The digest is of the plain bytes, so attempts may differ in how they encode.
#[test]
fn byte_exact_another_encoding_of_the_same_bytes_is_the_same_part() {
    let (mut bench, lifetime) = Bench::bound();
    let mut parts = entry(&lifetime, ANNE, 1, true, &["a", "b"]);
    bench.apply(&parts[..1]);
    parts[0].encoding = 2;
    parts[0].body = b"as if compressed".to_vec().into();
    assert_eq!(bench.fold(&parts[0]), Outcome::Duplicate { stale: false });
    bench.apply(&parts[1..]);
    let other = entry(&bind(1, "request"), ANNE, 1, true, &["a", "c"]);
    let altered = Outcome::Quarantined(Reason::Conflict(ConflictKind::EntryAltered));
    assert_eq!(bench.fold(&other[1]), altered);
}
