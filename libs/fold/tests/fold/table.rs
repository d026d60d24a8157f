//! DESIGN 4's table of parts, row by row.

use wakelog_fold::{Change, ConflictKind, Outcome, Reason, Remembered};
use wakelog_model::{Digest16, WriterNonce, remembered_hash};
use wakelog_proto::v1::{EntryPart, LifetimeStatus, SessionErased};

use crate::bench::{Bench, DUPLICATE, STALE, gap, stored};
use crate::records::{ANNE, BERT, bind, checkpoint, delta, end, entry};

const THREE: [&str; 3] = ["one", "two", "three"];

fn conflict(kind: ConflictKind) -> Outcome {
    Outcome::Quarantined(Reason::Conflict(kind))
}

/// A lifetime with entry 1 complete (of one part) and two of three parts of entry 2.
fn two_of_three_parts(checkpoint: bool) -> (Bench, Vec<EntryPart>) {
    let (mut bench, lifetime) = Bench::bound();
    bench.apply(&[delta(&lifetime, ANNE, 1, "first")]);
    let parts = entry(&lifetime, ANNE, 2, checkpoint, &THREE);
    bench.apply(&parts[..2]);
    (bench, parts)
}

// Row: the next part of the next entry.

#[test]
fn no_silent_gap_next_part_is_applied() {
    let (mut bench, lifetime) = Bench::bound();
    let parts = entry(&lifetime, ANNE, 1, false, &THREE);
    assert_eq!(bench.fold(&parts[0]), stored(1, 0, false));
    assert_eq!(
        (bench.lifetime().open_parts(), bench.lifetime().last_seq()),
        (1, 0)
    );
    assert_eq!(bench.fold(&parts[1]), stored(1, 1, false));
    assert_eq!(
        (bench.lifetime().open_parts(), bench.state.last_entry_seq()),
        (2, 0)
    );
    assert_eq!(bench.fold(&parts[2]), stored(1, 2, true));
    assert_eq!(
        (bench.lifetime().open_parts(), bench.lifetime().last_seq()),
        (0, 1)
    );
    assert_eq!(bench.state.last_entry_seq(), 1);
    assert_eq!(bench.state.last_checkpoint_seq(), 0);
}

#[test]
fn exactly_once_fold_entry_is_complete_at_base_plus_seq() {
    let (mut bench, first) = Bench::bound();
    bench.apply(&[checkpoint(&first, ANNE, 1, "a"), delta(&first, ANNE, 2, "b")]);
    let second = bench.bind(2);
    assert_eq!(bench.fold(&delta(&second, BERT, 1, "c")), stored(3, 0, true));
    assert_eq!(bench.fold(&checkpoint(&second, BERT, 2, "d")), stored(4, 0, true));
    assert_eq!(
        (bench.state.last_entry_seq(), bench.state.last_checkpoint_seq()),
        (4, 4)
    );
    assert_eq!(bench.fold(&delta(&second, BERT, 3, "e")), stored(5, 0, true));
    assert_eq!(
        (bench.state.last_entry_seq(), bench.state.last_checkpoint_seq()),
        (5, 4)
    );
    assert_eq!((bench.lifetime().base(), bench.lifetime().last_seq()), (2, 3));
}

#[test]
fn a_checkpoint_counts_once_it_is_complete() {
    let (mut bench, parts) = two_of_three_parts(true);
    assert_eq!(bench.state.last_checkpoint_seq(), 0);
    bench.apply(&parts[2..]);
    assert_eq!(bench.state.last_checkpoint_seq(), 2);
}

#[test]
fn one_writer_first_applied_part_sets_the_nonce() {
    let (mut bench, lifetime) = Bench::bound();
    assert_eq!(bench.lifetime().nonce(), None);
    assert_eq!(bench.fold(&delta(&lifetime, BERT, 2, "early")), gap(1, 0));
    assert_eq!(bench.lifetime().nonce(), None);
    bench.apply(&entry(&lifetime, ANNE, 1, false, &THREE)[..1]);
    assert_eq!(bench.lifetime().nonce(), Some(WriterNonce([ANNE; 16])));
}

// Row: the next entry, a part that was applied before.

#[test]
fn repeated_part_of_the_open_entry_is_a_duplicate() {
    let (mut bench, parts) = two_of_three_parts(false);
    assert_eq!(bench.fold(&parts[0]), DUPLICATE);
    assert_eq!(bench.fold(&parts[1]), DUPLICATE);
    assert_eq!(bench.fold(&parts[2]), stored(2, 2, true));
}

#[test]
fn parts_of_two_attempts_are_interchangeable() {
    let (mut bench, lifetime) = Bench::bound();
    let parts = entry(&lifetime, ANNE, 1, false, &THREE);
    let order = [0, 0, 1, 0, 1, 2, 1, 2];
    let outcomes = order.map(|part| bench.fold(&parts[part]));
    let stored_in_order = [stored(1, 0, false), stored(1, 1, false), stored(1, 2, true)];
    let applied = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::Applied(_)));
    assert_eq!(applied.cloned().collect::<Vec<_>>(), stored_in_order);
    assert_eq!(
        outcomes.iter().filter(|outcome| **outcome == DUPLICATE).count(),
        5
    );
}

// Row: a complete entry, not its last part.

#[test]
fn repeated_part_of_a_complete_entry_is_a_duplicate() {
    let (mut bench, parts) = two_of_three_parts(false);
    bench.apply(&parts[2..]);
    assert_eq!(bench.fold(&parts[0]), DUPLICATE);
    // Its bytes are not remembered, and need not be: the last part decides.
    let other = entry(
        &bind(1, "request"),
        ANNE,
        2,
        true,
        &["other", "bytes", "x", "y", "z"],
    );
    for part in &other[..4] {
        assert_eq!(bench.fold(part), DUPLICATE);
    }
    assert_eq!(bench.fold(&other[4]), conflict(ConflictKind::EntryAltered));
}

// Row: a complete entry, its last part, equal or too old to tell.

#[test]
fn repeated_last_part_of_a_complete_entry_is_a_duplicate() {
    let (mut bench, parts) = two_of_three_parts(true);
    bench.apply(&parts[2..]);
    assert_eq!(bench.fold(&parts[2]), DUPLICATE);
    assert_eq!(
        bench.fold(&delta(&bind(1, "request"), ANNE, 1, "first")),
        DUPLICATE
    );
}

#[test]
fn last_part_beyond_the_window_of_256_is_a_stale_duplicate() {
    let (mut bench, lifetime) = Bench::bound();
    let entries: Vec<_> = (1..=300)
        .map(|seq| delta(&lifetime, ANNE, seq, &format!("entry {seq}")))
        .collect();
    bench.apply(&entries[..256]);
    assert_eq!(bench.fold(&entries[0]), DUPLICATE);
    bench.apply(&entries[256..257]);
    assert_eq!(bench.fold(&entries[0]), STALE);
    assert_eq!(bench.fold(&entries[1]), DUPLICATE);
    bench.apply(&entries[257..]);
    // 45 is the oldest that is remembered, 44 is too old; also with other bytes.
    assert_eq!(bench.fold(&entries[44]), DUPLICATE);
    assert_eq!(bench.fold(&entries[43]), STALE);
    assert_eq!(bench.fold(&checkpoint(&lifetime, ANNE, 44, "other")), STALE);
    assert_eq!(bench.lifetime().status(), LifetimeStatus::Active);
    assert_eq!(
        bench.fold(&delta(&lifetime, ANNE, 45, "other")),
        conflict(ConflictKind::EntryAltered)
    );
}

#[test]
fn the_window_tells_what_is_remembered() {
    let (mut bench, lifetime) = Bench::bound();
    assert_eq!(bench.lifetime().remembered(0), Remembered::TooOld);
    assert_eq!(bench.lifetime().remembered(1), Remembered::NotYet);
    let entries: Vec<_> = (1..=258)
        .map(|seq| delta(&lifetime, ANNE, seq, &format!("entry {seq}")))
        .collect();
    bench.apply(&entries);
    let hash_of = |seq: usize| {
        let digest = Digest16::from_slice(&entries[seq - 1].entry_digest).unwrap();
        Remembered::Hash(remembered_hash(false, 1, digest))
    };
    assert_eq!(bench.lifetime().remembered(2), Remembered::TooOld);
    assert_eq!(bench.lifetime().remembered(3), hash_of(3));
    assert_eq!(bench.lifetime().remembered(257), hash_of(257));
    assert_eq!(bench.lifetime().remembered(258), hash_of(258));
    assert_eq!(bench.lifetime().remembered(259), Remembered::NotYet);
    assert_eq!(bench.lifetime().remembered(u64::MAX), Remembered::NotYet);
    bench.bind(2);
    assert_eq!(bench.lifetime().remembered(1), Remembered::NotYet);
}

// Row: already applied and not equal, or a last part that does not fit its parts.

#[test]
fn byte_exact_altered_repeats_are_conflicts() {
    use ConflictKind::{CheckpointFlag, EntryAltered, EntryDigest, PartAltered, PartCount};
    let lifetime = bind(1, "request");
    let flagged = entry(&lifetime, ANNE, 2, true, &THREE);
    let other = entry(&lifetime, ANNE, 2, false, &["1", "2", "3"]);
    let short = entry(&lifetime, ANNE, 2, false, &["one", "two"]);
    let (_, honest) = two_of_three_parts(false);
    let with = |part: &EntryPart, change: fn(&mut EntryPart)| {
        let mut part = part.clone();
        change(&mut part);
        part
    };
    let table = [
        (other[0].clone(), PartAltered),
        (other[1].clone(), PartAltered),
        (flagged[0].clone(), PartAltered),
        (flagged[1].clone(), PartAltered),
        // Part 1 as the last one, with the digest that was applied.
        (short[1].clone(), PartAltered),
        (flagged[2].clone(), CheckpointFlag),
        // Not the last part, but with another flag.
        (
            entry(&lifetime, ANNE, 2, true, &["one", "two", "three", "four"])[2].clone(),
            CheckpointFlag,
        ),
        (with(&honest[2], |part| part.part_count = 2), PartCount),
        (with(&honest[2], |part| part.part_count = 4), PartCount),
        (with(&honest[2], |part| part.part_count = u32::MAX), PartCount),
        (other[2].clone(), EntryDigest),
        // The digest of the part in place of the entry's.
        (
            with(&honest[2], |part| part.entry_digest = part.part_digest.clone()),
            EntryDigest,
        ),
        (delta(&lifetime, ANNE, 1, "tsrif"), EntryAltered),
        (checkpoint(&lifetime, ANNE, 1, "first"), EntryAltered),
        (
            with(&delta(&lifetime, ANNE, 1, "first"), |part| part.part_count = 2),
            EntryAltered,
        ),
    ];
    for (part, kind) in table {
        let (mut bench, honest) = two_of_three_parts(false);
        assert_eq!(bench.fold(&part), conflict(kind), "{part:?}");
        assert_eq!(bench.lifetime().status(), LifetimeStatus::Failed);
        assert_eq!(
            bench.fold(&honest[2]),
            Outcome::Quarantined(Reason::LifetimeFailed)
        );
    }
}

#[test]
fn first_part_that_does_not_fit_is_a_conflict() {
    for (part_count, flip, kind) in [(2, 0, ConflictKind::PartCount), (1, 1, ConflictKind::EntryDigest)] {
        let (mut bench, lifetime) = Bench::bound();
        let mut part = delta(&lifetime, ANNE, 1, "first");
        let mut digest = part.entry_digest.to_vec();
        digest[15] ^= flip;
        part.entry_digest = digest.into();
        part.part_count = part_count;
        assert_eq!(bench.fold(&part), conflict(kind));
        assert_eq!(bench.lifetime().nonce(), None);
    }
}

#[test]
fn a_failed_lifetime_refuses_all_until_the_next_bind() {
    let (mut bench, parts) = two_of_three_parts(false);
    let lifetime = bind(1, "request");
    assert_eq!(
        bench.fold(&delta(&lifetime, ANNE, 1, "other")),
        conflict(ConflictKind::EntryAltered)
    );
    let failed = Outcome::Quarantined(Reason::LifetimeFailed);
    assert_eq!(bench.fold(&parts[2]), failed);
    assert_eq!(bench.fold(&parts[0]), failed);
    assert_eq!(bench.fold(&delta(&lifetime, ANNE, 1, "first")), failed);
    assert_eq!(bench.fold(&delta(&lifetime, ANNE, 3, "gap")), failed);
    assert_eq!(bench.fold(&delta(&lifetime, BERT, 3, "another writer")), failed);
    assert_eq!(bench.fold(&end(&lifetime)), Outcome::EndIgnored);
    assert_eq!(bench.lifetime().status(), LifetimeStatus::Failed);
    let next = bind(2, "request");
    let bound = Outcome::Applied(Change::LifetimeBound {
        discarded_entry_seq: Some(2),
    });
    assert_eq!(bench.fold(&next), bound);
    assert_eq!(bench.lifetime().status(), LifetimeStatus::Active);
    assert_eq!(bench.fold(&delta(&next, BERT, 1, "goes on")), stored(2, 0, true));
}

// Row: gaps.

#[test]
fn no_silent_gap_what_comes_early_is_dropped() {
    let (mut bench, lifetime) = Bench::bound();
    let parts = entry(&lifetime, ANNE, 1, false, &THREE);
    assert_eq!(bench.fold(&parts[1]), gap(1, 0));
    assert_eq!(bench.fold(&parts[2]), gap(1, 0));
    assert_eq!(bench.fold(&delta(&lifetime, ANNE, 2, "x")), gap(1, 0));
    bench.apply(&parts[..1]);
    assert_eq!(bench.fold(&parts[2]), gap(1, 1));
    // A part of the entry after, whatever its number.
    assert_eq!(
        bench.fold(&entry(&lifetime, ANNE, 2, false, &THREE)[0]),
        gap(1, 1)
    );
    assert_eq!(
        bench.fold(&entry(&lifetime, ANNE, 2, false, &THREE)[1]),
        gap(1, 1)
    );
    // A gap is before the flag: nothing of the part is compared.
    assert_eq!(bench.fold(&entry(&lifetime, ANNE, 1, true, &THREE)[2]), gap(1, 1));
    bench.apply(&parts[1..]);
    assert_eq!(bench.fold(&delta(&lifetime, ANNE, 3, "x")), gap(2, 0));
    assert_eq!(bench.fold(&delta(&lifetime, ANNE, 2, "x")), stored(2, 0, true));
}

// Row: another nonce.

#[test]
fn one_writer_second_nonce_is_put_aside_and_the_lifetime_goes_on() {
    let (mut bench, parts) = two_of_three_parts(false);
    let lifetime = bind(1, "request");
    let second = Outcome::Quarantined(Reason::SecondWriter);
    assert_eq!(bench.fold(&delta(&lifetime, BERT, 1, "first")), second);
    assert_eq!(bench.fold(&delta(&lifetime, BERT, 1, "other")), second);
    assert_eq!(bench.fold(&entry(&lifetime, BERT, 2, false, &THREE)[2]), second);
    assert_eq!(bench.fold(&delta(&lifetime, BERT, 3, "x")), second);
    assert_eq!(bench.lifetime().status(), LifetimeStatus::Active);
    assert_eq!(bench.fold(&parts[2]), stored(2, 2, true));
    // The next lifetime takes any writer again, also this one.
    let next = bench.bind(2);
    assert_eq!(bench.fold(&delta(&next, BERT, 1, "x")), stored(3, 0, true));
}

// Row: the lifetime is current but ended.

#[test]
fn acked_is_durable_an_ended_lifetime_still_applies() {
    let (mut bench, parts) = two_of_three_parts(false);
    let lifetime = bind(1, "request");
    bench.apply(&[end(&lifetime)]);
    assert_eq!(bench.fold(&parts[0]), DUPLICATE);
    assert_eq!(bench.fold(&parts[2]), stored(2, 2, true));
    assert_eq!(bench.fold(&delta(&lifetime, ANNE, 3, "late")), stored(3, 0, true));
    assert_eq!(bench.fold(&delta(&lifetime, ANNE, 5, "gap")), gap(4, 0));
    assert_eq!(bench.lifetime().status(), LifetimeStatus::Ended);
    assert_eq!(
        bench.fold(&delta(&lifetime, ANNE, 3, "other")),
        conflict(ConflictKind::EntryAltered)
    );
    assert_eq!(bench.lifetime().status(), LifetimeStatus::Failed);
}

// Row: superseded, failed, unknown lifetime; unknown session.

#[test]
fn one_writer_a_superseded_lifetime_is_fenced() {
    let (mut bench, first) = Bench::bound();
    bench.apply(&[delta(&first, ANNE, 1, "a")]);
    bench.bind(2);
    let fenced = Outcome::Quarantined(Reason::Fenced);
    assert_eq!(bench.fold(&delta(&first, ANNE, 1, "a")), fenced);
    assert_eq!(bench.fold(&delta(&first, ANNE, 2, "b")), fenced);
    bench.bind(3);
    assert_eq!(bench.fold(&delta(&first, ANNE, 2, "b")), fenced);
    assert_eq!(bench.fold(&delta(&bind(2, "request"), ANNE, 1, "b")), fenced);
}

#[test]
fn an_unknown_lifetime_is_unbound() {
    let unbound = Outcome::Quarantined(Reason::Unbound);
    let mut bench = Bench::opened();
    assert_eq!(bench.fold(&delta(&bind(1, "request"), ANNE, 1, "a")), unbound);
    bench.bind(1);
    assert_eq!(bench.fold(&delta(&bind(1, "lost"), ANNE, 1, "a")), unbound);
    assert_eq!(bench.fold(&delta(&bind(2, "request"), ANNE, 1, "a")), unbound);
}

#[test]
fn an_unknown_session_is_unbound() {
    let lifetime = bind(1, "request");
    let mut bench = Bench::default();
    assert_eq!(
        bench.fold(&delta(&lifetime, ANNE, 1, "a")),
        Outcome::Quarantined(Reason::Unbound)
    );
}

// Row: erased.

#[test]
fn a_part_of_an_erased_session_is_counted_and_never_kept() {
    let (mut bench, parts) = two_of_three_parts(false);
    bench.apply(&[SessionErased {}]);
    for part in &parts {
        assert_eq!(bench.fold(part), Outcome::ErasedSession);
    }
}
