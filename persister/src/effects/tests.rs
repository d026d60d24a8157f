mod erasure;

use wakelog_proto::v1::{AccessRole, LifetimeStatus, SessionRecord};

use crate::decode::{Decoded, decode};
use crate::testing::{
    Harness, access, bound, ended, entry, entry_part, log_record, opened, opened_on, raw_record, session,
};

fn all_of(n: u8, records: Vec<SessionRecord>) -> Vec<(wakelog_model::SessionId, SessionRecord)> {
    records.into_iter().map(|record| (session(n), record)).collect()
}

/// Invariant exactly-once-fold: a fold of the same log later says the same times.
#[test]
fn exactly_once_fold_times_are_those_of_the_log() {
    let one = session(1);
    let mut harness = Harness::default();
    let at = |logged_at_ms, offset, record: &SessionRecord| Decoded {
        logged_at_ms: Some(logged_at_ms),
        ..decode(&log_record(offset, one, record))
    };
    let writes = harness.batch_of_decoded(&[
        at(100, 0, &opened(None)),
        at(110, 1, &bound(one, 1)),
        at(130, 2, &entry(one, 1, 1, b'a')),
        at(120, 3, &bound(one, 2)),
    ]);
    let session = &writes.sessions[0];
    assert_eq!(
        (session.opened_at_us, session.updated_at_us),
        (Some(100_000), Some(130_000))
    );
    let bound_at: Vec<_> = writes.lifetimes.iter().map(|write| write.bound_at_ms).collect();
    assert_eq!(bound_at, [Some(110), Some(120)]);
    let writes = harness.batch_of_decoded(&[at(140, 4, &entry(one, 2, 1, b'b'))]);
    let session = &writes.sessions[0];
    assert_eq!(
        (session.opened_at_us, session.updated_at_us),
        (None, Some(140_000))
    );
    assert_eq!(writes.lifetimes[0].bound_at_ms, None, "it was bound before");
}

#[test]
fn a_session_and_its_first_entries_come_in_one_batch() {
    let one = session(1);
    let mut harness = Harness::default();
    let writes = harness.batch(&all_of(
        1,
        vec![
            opened(None),
            access("bob", AccessRole::Subscriber),
            access("eve", AccessRole::Subscriber),
            access("eve", AccessRole::Unspecified),
            bound(one, 1),
            entry(one, 1, 1, b'a'),
            entry_part(one, 1, 2, (0, 1), true, b'b'),
            ended(one, 1),
        ],
    ));
    let [write] = writes.sessions.as_slice() else {
        panic!("{:?}", writes.sessions)
    };
    assert_eq!(
        (write.last_entry_seq, write.last_checkpoint_seq, write.generation),
        (2, 2, 1)
    );
    assert_eq!(
        (write.owner.as_str(), write.partition, write.erased),
        ("ada", 3, false)
    );
    assert_eq!(write.lifetime_status, LifetimeStatus::Ended as i32);
    let [lifetime] = writes.lifetimes.as_slice() else {
        panic!("{:?}", writes.lifetimes)
    };
    assert_eq!(
        (
            lifetime.generation,
            lifetime.base,
            lifetime.body_start,
            lifetime.applied_seq
        ),
        (1, 0, 1, 2)
    );
    assert_eq!(lifetime.status, LifetimeStatus::Ended as i32);
    let roles: Vec<_> = writes
        .access
        .iter()
        .map(|write| (write.account.as_str(), write.role))
        .collect();
    assert_eq!(roles, [("bob", AccessRole::Subscriber as i32), ("eve", 0)]);
    let parts: Vec<_> = writes
        .parts
        .iter()
        .map(|part| (part.entry_seq, part.part, part.checkpoint))
        .collect();
    assert_eq!(parts, [(1, 0, false), (2, 0, true)]);
    assert!(writes.discarded_entries.is_empty() && writes.quarantined.is_empty() && writes.erased.is_empty());
}

#[test]
fn every_lifetime_of_a_batch_is_written_as_it_was_when_it_was_superseded() {
    let one = session(1);
    let mut harness = Harness::default();
    let writes = harness.batch(&all_of(
        1,
        vec![
            opened(None),
            bound(one, 1),
            entry(one, 1, 1, b'a'),
            entry(one, 1, 2, b'b'),
            bound(one, 2),
            bound(one, 3),
            entry(one, 3, 1, b'c'),
            ended(one, 3),
            bound(one, 4),
        ],
    ));
    let lifetimes: Vec<_> = writes
        .lifetimes
        .iter()
        .map(|write| {
            (
                write.generation,
                write.base,
                write.applied_seq,
                write.nonce.is_some(),
                write.status,
            )
        })
        .collect();
    let (active, ended) = (LifetimeStatus::Active as i32, LifetimeStatus::Ended as i32);
    assert_eq!(
        lifetimes,
        [
            (1, 0, 2, true, active),
            (2, 2, 0, false, active),
            (3, 2, 1, true, ended),
            (4, 3, 0, false, active)
        ]
    );
    assert_eq!(writes.sessions.len(), 1);
    assert_eq!(writes.sessions[0].generation, 4);
}

#[test]
fn a_lifetime_of_an_earlier_batch_is_written_again_only_if_it_changed() {
    let one = session(1);
    let mut harness = Harness::default();
    harness.batch(&all_of(
        1,
        vec![opened(None), bound(one, 1), entry(one, 1, 1, b'a')],
    ));
    let writes = harness.batch(&all_of(1, vec![bound(one, 2)]));
    assert_eq!(
        writes
            .lifetimes
            .iter()
            .map(|write| write.generation)
            .collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(harness.store.lifetimes[&(one, 1)].applied_seq, 1);

    harness.die();
    let writes = harness.batch(&all_of(1, vec![entry(one, 2, 1, b'b'), bound(one, 3)]));
    assert_eq!(
        writes
            .lifetimes
            .iter()
            .map(|write| write.generation)
            .collect::<Vec<_>>(),
        [2, 3]
    );
    assert_eq!(harness.store.lifetimes[&(one, 2)].applied_seq, 1);
}

#[test]
fn a_bind_discards_parts_of_the_same_batch_before_they_are_inserted() {
    let one = session(1);
    let mut harness = Harness::default();
    let writes = harness.batch(&all_of(
        1,
        vec![
            opened(None),
            bound(one, 1),
            entry(one, 1, 1, b'a'),
            entry_part(one, 1, 2, (0, 2), false, b'x'),
            bound(one, 2),
            // The new lifetime's first entry has the very entry_seq that was discarded.
            entry_part(one, 2, 1, (0, 2), false, b'y'),
        ],
    ));
    assert_eq!(writes.discarded_entries, [(one, 2)]);
    let parts: Vec<_> = writes
        .parts
        .iter()
        .map(|part| (part.entry_seq, part.part, part.generation))
        .collect();
    assert_eq!(parts, [(1, 0, 1), (2, 0, 2)]);
}

#[test]
fn a_bind_discards_parts_of_an_earlier_batch_and_those_of_its_own_stay() {
    let one = session(1);
    let mut harness = Harness::default();
    harness.batch(&all_of(
        1,
        vec![
            opened(None),
            bound(one, 1),
            entry_part(one, 1, 1, (0, 3), false, b'x'),
        ],
    ));
    harness.die();
    harness.batch(&all_of(1, vec![entry_part(one, 1, 1, (1, 3), false, b'x')]));
    let writes = harness.batch(&all_of(1, vec![bound(one, 2), entry(one, 2, 1, b'y')]));
    assert_eq!(writes.discarded_entries, [(one, 1)]);
    let stored: Vec<_> = harness
        .store
        .parts
        .values()
        .map(|part| (part.entry_seq, part.part, part.generation))
        .collect();
    assert_eq!(stored, [(1, 0, 2)]);
}

#[test]
fn two_binds_of_a_batch_discard_the_same_entry_twice() {
    let one = session(1);
    let mut harness = Harness::default();
    harness.batch(&all_of(
        1,
        vec![
            opened(None),
            bound(one, 1),
            entry_part(one, 1, 1, (0, 2), false, b'x'),
        ],
    ));
    let writes = harness.batch(&all_of(
        1,
        vec![
            bound(one, 2),
            entry_part(one, 2, 1, (0, 2), false, b'y'),
            bound(one, 3),
            entry_part(one, 3, 1, (0, 2), true, b'z'),
            entry_part(one, 3, 1, (1, 2), true, b'z'),
        ],
    ));
    assert_eq!(writes.discarded_entries, [(one, 1)]);
    let stored: Vec<_> = harness
        .store
        .parts
        .values()
        .map(|part| (part.part, part.generation))
        .collect();
    assert_eq!(stored, [(0, 3), (1, 3)]);
    assert_eq!(writes.sessions[0].last_checkpoint_seq, 1);
}

#[test]
fn a_conflict_fails_the_lifetime_in_the_store_and_the_next_bind_goes_on() {
    let one = session(1);
    let mut harness = Harness::default();
    harness.batch(&all_of(
        1,
        vec![opened(None), bound(one, 1), entry(one, 1, 1, b'a')],
    ));
    let writes = harness.batch(&all_of(1, vec![entry(one, 1, 1, b'b'), entry(one, 1, 2, b'c')]));
    let reasons: Vec<_> = writes
        .quarantined
        .iter()
        .map(|record| (record.offset, record.reason))
        .collect();
    assert_eq!(reasons, [(3, "conflict"), (4, "lifetime_failed")]);
    assert_eq!(writes.lifetimes.len(), 1);
    assert_eq!(
        harness.store.lifetimes[&(one, 1)].status,
        LifetimeStatus::Failed as i32
    );
    assert_eq!(
        harness.store.sessions[&one].lifetime_status,
        LifetimeStatus::Failed as i32
    );

    harness.die();
    let writes = harness.batch(&all_of(
        1,
        vec![
            entry(one, 1, 3, b'd'),
            bound(one, 2),
            entry(one, 2, 1, b'e'),
            entry(one, 1, 4, b'f'),
        ],
    ));
    let reasons: Vec<_> = writes.quarantined.iter().map(|record| record.reason).collect();
    assert_eq!(reasons, ["lifetime_failed", "fenced"]);
    assert_eq!(
        harness.store.lifetimes[&(one, 1)].status,
        LifetimeStatus::Failed as i32
    );
    assert_eq!(
        harness
            .store
            .parts
            .keys()
            .map(|(_, seq, _)| *seq)
            .collect::<Vec<_>>(),
        [1, 2]
    );
}

#[test]
fn a_conflict_and_the_bind_after_it_in_one_batch_leave_a_failed_row() {
    let one = session(1);
    let mut harness = Harness::default();
    let writes = harness.batch(&all_of(
        1,
        vec![
            opened(None),
            bound(one, 1),
            entry_part(one, 1, 1, (0, 2), false, b'x'),
            entry_part(one, 1, 1, (0, 2), false, b'y'),
            bound(one, 2),
        ],
    ));
    let statuses: Vec<_> = writes.lifetimes.iter().map(|write| write.status).collect();
    assert_eq!(
        statuses,
        [LifetimeStatus::Failed as i32, LifetimeStatus::Active as i32]
    );
    assert!(writes.parts.is_empty(), "{:?}", writes.parts);
}

#[test]
fn what_is_quarantined_changes_nothing_else() {
    let one = session(1);
    let mut harness = Harness::default();
    let writes = harness.batch_of(vec![
        raw_record(0, "not a session", b"x"),
        raw_record(1, &one.to_string(), b"\xff\xff"),
        log_record(2, one, &entry(one, 1, 1, b'a')),
        log_record(3, session(2), &opened_on(4, None)),
    ]);
    let reasons: Vec<_> = writes
        .quarantined
        .iter()
        .map(|record| (record.offset, record.reason))
        .collect();
    assert_eq!(
        reasons,
        [
            (0, "undecodable"),
            (1, "undecodable"),
            (2, "unbound"),
            (3, "wrong_partition")
        ]
    );
    assert_eq!(writes.quarantined[0].record_key, b"not a session");
    assert_eq!(writes.quarantined[0].raw.as_ref(), b"x");
    assert!(writes.sessions.is_empty() && writes.parts.is_empty() && writes.lifetimes.is_empty());
}

#[test]
fn repeats_and_gaps_write_nothing() {
    let one = session(1);
    let mut harness = Harness::default();
    harness.batch(&all_of(
        1,
        vec![opened(None), bound(one, 1), entry(one, 1, 1, b'a')],
    ));
    let repeats = vec![
        opened(None),
        bound(one, 1),
        entry(one, 1, 1, b'a'),
        entry(one, 1, 3, b'c'),
        bound(one, 7),
        ended(one, 9),
    ];
    let writes = harness.batch(&all_of(1, repeats));
    assert!(writes.is_empty(), "{writes:?}");
}
