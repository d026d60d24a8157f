//! Binds and ends, and what a bind fixes.

use wakelog_fold::{Change, Outcome, Reason};
use wakelog_model::LifetimeId;
use wakelog_proto::v1::LifetimeStatus;

use crate::bench::{Bench, DUPLICATE, stored};
use crate::records::{ANNE, bind, checkpoint, delta, end, entry, session};

fn bound(discarded_entry_seq: Option<u64>) -> Outcome {
    Outcome::Applied(Change::LifetimeBound { discarded_entry_seq })
}

#[test]
fn one_writer_a_bind_makes_its_lifetime_current() {
    let mut bench = Bench::opened();
    assert_eq!((bench.state.generation(), bench.state.lifetime()), (0, None));
    assert_eq!(bench.fold(&bind(1, "a request")), bound(None));
    let lifetime = bench.lifetime();
    assert_eq!(lifetime.id(), LifetimeId::for_bind(session(), "a request", 1));
    assert_eq!((lifetime.generation(), lifetime.request_id()), (1, "a request"));
    assert_eq!((lifetime.base(), lifetime.body_start()), (0, 1));
    assert_eq!(
        (lifetime.last_seq(), lifetime.open_parts(), lifetime.nonce()),
        (0, 0, None)
    );
    assert_eq!(lifetime.status(), LifetimeStatus::Active);
    assert_eq!(bench.state.generation(), 1);
}

#[test]
fn one_writer_of_racing_binds_exactly_one_wins() {
    let mut bench = Bench::opened();
    let lost = |generation| Outcome::BindLost { generation };
    assert_eq!(bench.fold(&bind(2, "too early")), lost(0));
    assert_eq!(bench.fold(&bind(u64::MAX >> 1, "far too early")), lost(0));
    assert_eq!(bench.fold(&bind(1, "wins")), bound(None));
    assert_eq!(bench.fold(&bind(1, "loses")), lost(1));
    assert_eq!(bench.fold(&bind(3, "too early")), lost(1));
    assert_eq!(bench.fold(&bind(1, "wins")), DUPLICATE);
    assert_eq!(bench.fold(&bind(2, "takes over")), bound(None));
    assert_eq!(bench.fold(&bind(1, "wins")), lost(2));
    assert_eq!(bench.fold(&bind(2, "takes over")), DUPLICATE);
    assert_eq!(bench.fold(&bind(3, "wins")), bound(None));
}

#[test]
fn a_repeated_bind_changes_nothing_of_a_lifetime_that_went_on() {
    let (mut bench, lifetime) = Bench::bound();
    bench.apply(&[delta(&lifetime, ANNE, 1, "a")]);
    assert_eq!(bench.fold(&lifetime), DUPLICATE);
    bench.apply(&[end(&lifetime)]);
    assert_eq!(bench.fold(&lifetime), DUPLICATE);
    assert_eq!(bench.lifetime().status(), LifetimeStatus::Ended);
}

#[test]
fn resume_is_current_a_bind_fixes_base_and_body_start() {
    let (mut bench, first) = Bench::bound();
    bench.apply(&[delta(&first, ANNE, 1, "a"), delta(&first, ANNE, 2, "b")]);
    let second = bench.bind(2);
    assert_eq!((bench.lifetime().base(), bench.lifetime().body_start()), (2, 1));
    bench.apply(&[checkpoint(&second, ANNE, 1, "c"), delta(&second, ANNE, 2, "d")]);
    // Write-once: what is applied after the bind does not move them.
    assert_eq!((bench.lifetime().base(), bench.lifetime().body_start()), (2, 1));
    let third = bench.bind(3);
    assert_eq!((bench.lifetime().base(), bench.lifetime().body_start()), (4, 3));
    bench.apply(&[checkpoint(&third, ANNE, 1, "e")]);
    bench.bind(4);
    assert_eq!((bench.lifetime().base(), bench.lifetime().body_start()), (5, 5));
    // A lifetime that wrote nothing changes nothing for the next.
    bench.bind(5);
    assert_eq!((bench.lifetime().base(), bench.lifetime().body_start()), (5, 5));
}

#[test]
fn exactly_once_fold_a_bind_discards_unfinished_parts() {
    let (mut bench, first) = Bench::bound();
    bench.apply(&[delta(&first, ANNE, 1, "a"), delta(&first, ANNE, 2, "b")]);
    bench.apply(&entry(&first, ANNE, 3, true, &["x", "y", "z"])[..2]);
    let second = bind(2, "request");
    assert_eq!(bench.fold(&second), bound(Some(3)));
    assert_eq!((bench.lifetime().base(), bench.lifetime().body_start()), (2, 1));
    assert_eq!(bench.lifetime().open_parts(), 0);
    assert_eq!(bench.fold(&delta(&second, ANNE, 1, "c")), stored(3, 0, true));
    // Complete entries are not discarded.
    assert_eq!(bench.fold(&bind(3, "request")), bound(None));
}

#[test]
fn a_lost_bind_discards_nothing() {
    let (mut bench, first) = Bench::bound();
    let parts = entry(&first, ANNE, 1, false, &["x", "y"]);
    bench.apply(&parts[..1]);
    assert_eq!(
        bench.fold(&bind(3, "request")),
        Outcome::BindLost { generation: 1 }
    );
    assert_eq!(bench.fold(&first), DUPLICATE);
    assert_eq!(bench.fold(&parts[1]), stored(1, 1, true));
}

#[test]
fn the_current_lifetime_ends_once() {
    let (mut bench, first) = Bench::bound();
    assert_eq!(bench.fold(&end(&first)), Outcome::Applied(Change::LifetimeEnded));
    assert_eq!(bench.lifetime().status(), LifetimeStatus::Ended);
    assert_eq!(bench.fold(&end(&first)), Outcome::EndIgnored);
}

#[test]
fn the_end_of_any_other_lifetime_is_ignored() {
    let mut bench = Bench::opened();
    assert_eq!(bench.fold(&end(&bind(1, "request"))), Outcome::EndIgnored);
    let first = bench.bind(1);
    assert_eq!(bench.fold(&end(&bind(1, "another"))), Outcome::EndIgnored);
    bench.bind(2);
    assert_eq!(bench.fold(&end(&first)), Outcome::EndIgnored);
    assert_eq!(bench.lifetime().status(), LifetimeStatus::Active);
}

#[test]
fn an_end_leaves_the_open_entry() {
    let (mut bench, first) = Bench::bound();
    bench.apply(&entry(&first, ANNE, 1, false, &["x", "y"])[..1]);
    bench.apply(&[end(&first)]);
    assert_eq!(bench.lifetime().open_parts(), 1);
    assert_eq!(bench.fold(&bind(2, "request")), bound(Some(1)));
}

#[test]
fn binds_and_ends_of_an_unknown_session_are_unbound() {
    let mut bench = Bench::default();
    assert_eq!(
        bench.fold(&bind(1, "request")),
        Outcome::Quarantined(Reason::Unbound)
    );
    assert_eq!(
        bench.fold(&end(&bind(1, "request"))),
        Outcome::Quarantined(Reason::Unbound)
    );
}
