use wakelog_model::limits::PART_SIZE;

use super::*;

fn delta(entry_seq: u64) -> PartHead {
    PartHead {
        entry_seq,
        part: 0,
        last: true,
        checkpoint: false,
        generation: 1,
        plain_length: 3,
    }
}

fn checkpoint(entry_seq: u64) -> PartHead {
    PartHead {
        checkpoint: true,
        ..delta(entry_seq)
    }
}

fn parts(entry_seq: u64, count: u32) -> Vec<PartHead> {
    (0..count)
        .map(|part| {
            let last = part + 1 == count;
            PartHead {
                part,
                last,
                plain_length: if last { 7 } else { PART_SIZE as u32 },
                ..delta(entry_seq)
            }
        })
        .collect()
}

fn run(rule: Rule, first: u64, last: u64, heads: &[PartHead]) -> Result<(), Disorder> {
    let mut sequence = Sequence::new(rule, first, last);
    for head in heads {
        sequence.accept(head)?;
    }
    sequence.finish()
}

#[test]
fn a_body_is_a_checkpoint_and_the_deltas_after_it() {
    assert_eq!(
        run(Rule::Body, 4, 6, &[checkpoint(4), delta(5), delta(6)]),
        Ok(())
    );
}

#[test]
fn a_body_from_entry_1_may_start_with_either() {
    assert_eq!(run(Rule::Body, 1, 2, &[delta(1), delta(2)]), Ok(()));
    assert_eq!(run(Rule::Body, 1, 2, &[checkpoint(1), delta(2)]), Ok(()));
}

#[test]
fn a_body_that_starts_later_starts_with_a_checkpoint() {
    assert_eq!(
        run(Rule::Body, 4, 5, &[delta(4), delta(5)]),
        Err(Disorder::NoCheckpointFirst { entry_seq: 4 })
    );
    assert_eq!(run(Rule::Entries, 4, 5, &[delta(4), delta(5)]), Ok(()));
}

#[test]
fn a_checkpoint_inside_a_body_is_refused_and_inside_a_tail_is_not() {
    let heads = [checkpoint(1), delta(2), checkpoint(3)];
    assert_eq!(
        run(Rule::Body, 1, 3, &heads),
        Err(Disorder::CheckpointInside { entry_seq: 3 })
    );
    assert_eq!(run(Rule::Entries, 1, 3, &heads), Ok(()));
}

/// Every way to lose, repeat or swap one part of a body is an error, and never a shorter body.
#[test]
fn every_single_loss_repeat_or_swap_is_an_error() {
    let mut whole = vec![checkpoint(3)];
    whole.extend(parts(4, 3));
    whole.push(delta(5));
    whole.extend(parts(6, 2));
    assert_eq!(run(Rule::Body, 3, 6, &whole), Ok(()));

    for at in 0..whole.len() {
        let mut lost = whole.clone();
        lost.remove(at);
        assert!(run(Rule::Body, 3, 6, &lost).is_err(), "lost {at}");

        let mut repeated = whole.clone();
        repeated.insert(at, whole[at]);
        assert!(run(Rule::Body, 3, 6, &repeated).is_err(), "repeated {at}");

        for other in at + 1..whole.len() {
            let mut swapped = whole.clone();
            swapped.swap(at, other);
            assert!(run(Rule::Body, 3, 6, &swapped).is_err(), "swapped {at} {other}");
        }
    }
    for kept in 0..whole.len() {
        assert!(run(Rule::Body, 3, 6, &whole[..kept]).is_err(), "cut after {kept}");
    }
}

#[test]
fn what_is_missing_is_named() {
    assert_eq!(
        run(Rule::Body, 1, 3, &[delta(1), delta(3)]),
        Err(Disorder::Unexpected {
            found: (3, 0),
            expected: (2, 0)
        })
    );
    let multi = parts(1, 3);
    assert_eq!(
        run(Rule::Body, 1, 1, &[multi[0], multi[2]]),
        Err(Disorder::Unexpected {
            found: (1, 2),
            expected: (1, 1)
        })
    );
    assert_eq!(
        run(Rule::Body, 1, 1, &multi[..2]),
        Err(Disorder::Short { expected: (1, 2) })
    );
}

#[test]
fn an_entry_beyond_the_range_is_refused() {
    assert_eq!(
        run(Rule::Body, 1, 1, &[delta(1), delta(2)]),
        Err(Disorder::Beyond { found: (2, 0) })
    );
}

#[test]
fn lengths_must_fit_their_place() {
    let short_middle = PartHead {
        last: false,
        plain_length: 5,
        ..delta(1)
    };
    assert_eq!(
        run(Rule::Body, 1, 1, &[short_middle]),
        Err(Disorder::Length { at: (1, 0) })
    );
    let empty = PartHead {
        plain_length: 0,
        ..delta(1)
    };
    assert_eq!(
        run(Rule::Body, 1, 1, &[empty]),
        Err(Disorder::Length { at: (1, 0) })
    );
    let long = PartHead {
        plain_length: PART_SIZE as u32 + 1,
        ..delta(1)
    };
    assert_eq!(
        run(Rule::Body, 1, 1, &[long]),
        Err(Disorder::Length { at: (1, 0) })
    );
}

#[test]
fn the_parts_of_an_entry_agree() {
    let mut mixed = parts(1, 2);
    mixed[1].checkpoint = true;
    assert_eq!(
        run(Rule::Body, 1, 1, &mixed),
        Err(Disorder::MixedCheckpoint { entry_seq: 1 })
    );
    let mut mixed = parts(1, 2);
    mixed[1].generation = 2;
    assert_eq!(
        run(Rule::Body, 1, 1, &mixed),
        Err(Disorder::MixedGeneration { entry_seq: 1 })
    );
}

#[test]
fn generations_never_go_back() {
    let later = PartHead {
        generation: 2,
        ..delta(2)
    };
    assert_eq!(run(Rule::Body, 1, 2, &[delta(1), later]), Ok(()));
    assert_eq!(
        run(Rule::Body, 1, 3, &[delta(1), later, delta(3)]),
        Err(Disorder::EarlierGeneration { entry_seq: 3 })
    );
}

#[test]
fn an_empty_range_is_complete_and_takes_nothing() {
    assert_eq!(run(Rule::Entries, 5, 4, &[]), Ok(()));
    assert_eq!(
        run(Rule::Entries, 5, 4, &[delta(5)]),
        Err(Disorder::Beyond { found: (5, 0) })
    );
}
