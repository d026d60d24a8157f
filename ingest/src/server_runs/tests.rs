use std::time::Duration;

use tokio::time::Instant;

use super::ServerRuns;

const TIMEOUT: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(1);

/// A process that met run 1, and then 2 a second later.
fn after_a_takeover() -> (ServerRuns, Instant) {
    let start = Instant::now();
    let noticed_at = start + Duration::from_secs(1);
    let mut server_runs = ServerRuns::default();
    server_runs.met(1, start, start);
    server_runs.met(2, noticed_at - TICK, noticed_at);
    (server_runs, noticed_at)
}

#[test]
fn the_first_store_is_trusted() {
    let mut server_runs = ServerRuns::default();
    assert!(!server_runs.may_lack_binds(0, 1, 10));
    let now = Instant::now();
    server_runs.met(1, now, now);
    assert!(!server_runs.may_lack_binds(0, 1, 10));
    assert!(server_runs.may_lack_binds(0, 2, 10), "of another one");
    assert!(
        server_runs
            .ends_wanted(0..4, now + 2 * TIMEOUT, TIMEOUT)
            .is_empty()
    );
    assert_eq!(server_runs.doubted([(0, 10)].into_iter()), 0);
}

/// Invariant one-writer: binds may be in what a store lost that has as much as was seen of it.
#[test]
fn another_store_is_trusted_once_it_has_what_the_partition_held() {
    let (mut server_runs, noticed_at) = after_a_takeover();
    assert!(server_runs.may_lack_binds(0, 2, 10));
    // A bind that was announced in what is lost may still be on its way.
    assert!(
        server_runs
            .ends_wanted(0..1, noticed_at + TIMEOUT, TIMEOUT)
            .is_empty()
    );
    let later = noticed_at + TIMEOUT + TICK;
    assert_eq!(server_runs.ends_wanted(0..2, later, TIMEOUT), [(0, 1), (1, 1)]);
    assert!(
        server_runs.may_lack_binds(0, 2, 1_000),
        "its end is not known yet"
    );
    server_runs.partition_end(0, 1, 15);
    assert_eq!(server_runs.ends_wanted(0..2, later, TIMEOUT), [(1, 1)]);
    assert!(server_runs.may_lack_binds(0, 2, 14));
    assert!(!server_runs.may_lack_binds(0, 2, 15));
    // A read that ends after another one and is of a moment before it.
    assert!(server_runs.may_lack_binds(0, 2, 14));
    assert_eq!(server_runs.doubted([(0, 15), (1, 100)].into_iter()), 1);
    assert_eq!(server_runs.doubted([(0, 14), (1, 100)].into_iter()), 2);
}

#[test]
fn another_loss_begins_anew() {
    let (mut server_runs, noticed_at) = after_a_takeover();
    server_runs.partition_end(0, 1, 5);
    assert!(!server_runs.may_lack_binds(0, 2, 5));
    let again = noticed_at + 2 * TIMEOUT;
    server_runs.met(3, again - TICK, again);
    // What was read for the one before says nothing.
    server_runs.partition_end(0, 1, 5);
    assert!(server_runs.may_lack_binds(0, 3, 5));
    assert!(server_runs.ends_wanted(0..1, again + TIMEOUT, TIMEOUT).is_empty());
    assert_eq!(
        server_runs.ends_wanted(0..1, again + 2 * TIMEOUT, TIMEOUT),
        [(0, 2)]
    );
}

/// The first server was away and takes over again: what the second one confirmed meanwhile may be lost.
#[test]
fn a_store_that_comes_back_is_another_one() {
    let (mut server_runs, noticed_at) = after_a_takeover();
    server_runs.partition_end(0, 1, 5);
    let again = noticed_at + TIMEOUT;
    server_runs.met(1, again - TICK, again);
    assert!(server_runs.may_lack_binds(0, 1, 5));
    assert!(server_runs.may_lack_binds(0, 2, 5));
}

/// The same run comes back while the partition's end is read for it: that end is of before.
#[test]
fn an_end_that_was_wanted_before_the_same_run_came_back_is_too_old() {
    let (mut server_runs, noticed_at) = after_a_takeover();
    for (run, seconds) in [(1, 1), (2, 2)] {
        let again = noticed_at + Duration::from_secs(seconds);
        server_runs.met(run, again - TICK, again);
    }
    server_runs.partition_end(0, 1, 5);
    assert!(server_runs.may_lack_binds(0, 2, 5));
    server_runs.partition_end(0, 3, 5);
    assert!(!server_runs.may_lack_binds(0, 2, 5));
}

#[test]
fn a_read_of_before_it_was_noticed_changes_nothing() {
    let (mut server_runs, noticed_at) = after_a_takeover();
    server_runs.met(1, noticed_at - TICK, noticed_at + TICK);
    assert!(
        server_runs.may_lack_binds(0, 1, 100),
        "what it read is of the store before"
    );
    server_runs.partition_end(0, 1, 7);
    assert!(server_runs.may_lack_binds(0, 2, 6));
    assert!(!server_runs.may_lack_binds(0, 2, 7));
}
