//! The ends of the number ranges. No log gets there; a fold that panics there would still stop a partition.

use prost::Message as _;
use wakelog_fold::{Change, Malformed, Outcome, Reason, SessionState};
use wakelog_model::limits::MAX_PARTS;
use wakelog_proto::v1::{FoldState, LifetimeFoldState, LifetimeStatus};

use crate::bench::{Bench, gap, stored};
use crate::records::{ANNE, bind, checkpoint, delta, entry, opened};

const LAST: u64 = i64::MAX as u64;

/// A session whose lifetime 7 has `base`.
fn with_base(base: u64) -> Bench {
    let bound = bind(7, "request");
    let stored = FoldState {
        opened: Some(opened()),
        last_entry_seq: base,
        lifetime: Some(LifetimeFoldState {
            lifetime_id: bound.lifetime_id,
            generation: 7,
            request_id: bound.request_id,
            base,
            body_start: 1,
            status: LifetimeStatus::Active.into(),
            ..LifetimeFoldState::default()
        }),
        ..FoldState::default()
    };
    Bench {
        state: SessionState::decode(&stored.encode_to_vec()).unwrap(),
    }
}

fn out_of_range(lifetime_seq: u64) -> Outcome {
    Outcome::Quarantined(Reason::Malformed(Malformed::SequenceOutOfRange { lifetime_seq }))
}

#[test]
fn an_entry_seq_stays_within_a_bigint() {
    let lifetime = bind(7, "request");
    let mut bench = with_base(LAST - 1);
    assert_eq!(bench.fold(&delta(&lifetime, ANNE, 2, "a")), out_of_range(2));
    assert_eq!(bench.fold(&delta(&lifetime, ANNE, LAST, "a")), out_of_range(LAST));
    assert_eq!(
        bench.fold(&checkpoint(&lifetime, ANNE, 1, "a")),
        stored(LAST, 0, true)
    );
    assert_eq!(bench.fold(&delta(&lifetime, ANNE, 2, "a")), out_of_range(2));
    let next = bench.bind(8);
    assert_eq!(
        (bench.lifetime().base(), bench.lifetime().body_start()),
        (LAST, LAST)
    );
    assert_eq!(bench.fold(&delta(&next, ANNE, 1, "a")), out_of_range(1));
    assert_eq!(
        bench.fold(&delta(&next, ANNE, u64::MAX, "a")),
        out_of_range(u64::MAX)
    );
    bench.bind(9);
}

#[test]
fn the_last_entry_of_all_can_be_left_unfinished() {
    let lifetime = bind(7, "request");
    let mut bench = with_base(LAST - 1);
    bench.apply(&entry(&lifetime, ANNE, 1, false, &["a", "b"])[..1]);
    let discarded = Change::LifetimeBound {
        discarded_entry_seq: Some(LAST),
    };
    assert_eq!(bench.fold(&bind(8, "request")), Outcome::Applied(discarded));
}

#[test]
fn a_lifetime_seq_may_be_as_large_as_an_entry_seq() {
    let (mut bench, lifetime) = Bench::bound();
    assert_eq!(bench.fold(&delta(&lifetime, ANNE, LAST, "a")), gap(1, 0));
}

#[test]
fn an_entry_may_have_as_many_parts_as_the_largest_entry() {
    let (mut bench, lifetime) = Bench::bound();
    let bodies: Vec<_> = (0..MAX_PARTS).map(|part| part.to_string()).collect();
    let parts = entry(&lifetime, ANNE, 1, true, &bodies);
    bench.apply(&parts[..2047]);
    let mut endless = bench.clone();
    assert_eq!(bench.fold(&parts[2047]), stored(1, 2047, true));
    // A part 2047 that is not the last is well-formed, but there is none after it.
    let longer: Vec<_> = (0..=MAX_PARTS).map(|part| part.to_string()).collect();
    let longer = entry(&lifetime, ANNE, 1, true, &longer);
    assert_eq!(endless.fold(&longer[2047]), stored(1, 2047, false));
    let beyond = Malformed::PartOutOfRange {
        part: 2048,
        limit: 2048,
    };
    assert_eq!(
        endless.fold(&longer[2048]),
        Outcome::Quarantined(Reason::Malformed(beyond))
    );
    let discarded = Change::LifetimeBound {
        discarded_entry_seq: Some(1),
    };
    assert_eq!(endless.fold(&bind(2, "request")), Outcome::Applied(discarded));
}
