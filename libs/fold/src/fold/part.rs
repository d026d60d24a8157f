//! Whether a part is the next one, one that was applied before, or one that may not be applied (DESIGN 4's table).

use std::cmp::Ordering;

use wakelog_model::{entry_digest, remembered_hash};
use wakelog_proto::v1::{EntryPart, LifetimeStatus};

use super::{Context, check_known_here};
use crate::validate::{self, MAX_NUMBER, Part};
use crate::{Change, ConflictKind, Lifetime, Malformed, Outcome, Reason, Remembered, SessionState};

pub(super) fn take(
    state: &mut SessionState,
    record: &EntryPart,
    context: &Context,
) -> Result<Outcome, Reason> {
    let part = validate::part(record)?;
    check_known_here(state, context)?;
    let lifetime = state.lifetime.as_mut().ok_or(Reason::Unbound)?;
    check_current(lifetime, &part)?;
    let entry_seq = entry_seq(lifetime, &part)?;
    check_writer(lifetime, &part)?;

    let outcome = place(lifetime, &part, entry_seq);
    match outcome {
        Ok(Outcome::Applied(Change::PartStored {
            completes_entry: true,
            ..
        })) => {
            state.last_entry_seq = entry_seq;
            if part.checkpoint {
                state.last_checkpoint_seq = entry_seq;
            }
        }
        Err(Reason::Conflict(_)) => lifetime.status = LifetimeStatus::Failed,
        _ => {}
    }
    outcome
}

fn check_current(lifetime: &Lifetime, part: &Part) -> Result<(), Reason> {
    if part.lifetime != lifetime.id {
        let superseded = part.generation < lifetime.generation;
        return Err(if superseded {
            Reason::Fenced
        } else {
            Reason::Unbound
        });
    }
    if part.generation != lifetime.generation {
        let (expected, actual) = (lifetime.generation, part.generation);
        return Err(Malformed::GenerationNotTheLifetimes { expected, actual }.into());
    }
    Ok(())
}

fn entry_seq(lifetime: &Lifetime, part: &Part) -> Result<u64, Malformed> {
    lifetime
        .base
        .checked_add(part.lifetime_seq)
        .filter(|entry_seq| *entry_seq <= MAX_NUMBER)
        .ok_or(Malformed::SequenceOutOfRange {
            lifetime_seq: part.lifetime_seq,
        })
}

/// An ended lifetime passes: ended makes ingest refuse, and what was already acknowledged counts.
fn check_writer(lifetime: &Lifetime, part: &Part) -> Result<(), Reason> {
    if lifetime.status == LifetimeStatus::Failed {
        return Err(Reason::LifetimeFailed);
    }
    if lifetime.nonce.is_some_and(|nonce| nonce != part.nonce) {
        return Err(Reason::SecondWriter);
    }
    Ok(())
}

fn place(lifetime: &mut Lifetime, part: &Part, entry_seq: u64) -> Result<Outcome, Reason> {
    let expected_seq = lifetime.last_seq.saturating_add(1);
    let expected_part = lifetime.open_parts();
    match (part.lifetime_seq, part.number).cmp(&(expected_seq, expected_part)) {
        Ordering::Equal => apply(lifetime, part, entry_seq),
        Ordering::Greater => Ok(Outcome::Gap {
            expected_seq,
            expected_part,
        }),
        Ordering::Less if part.lifetime_seq == expected_seq => repeat_of_open_entry(lifetime, part),
        Ordering::Less => repeat_of_complete_entry(lifetime, part),
    }
}

fn apply(lifetime: &mut Lifetime, part: &Part, entry_seq: u64) -> Result<Outcome, Reason> {
    let open = lifetime.open_entry.as_ref();
    if open.is_some_and(|open| open.checkpoint != part.checkpoint) {
        return Err(Reason::Conflict(ConflictKind::CheckpointFlag));
    }
    if let Some(end) = &part.end {
        if end.part_count != part.number.saturating_add(1) {
            return Err(Reason::Conflict(ConflictKind::PartCount));
        }
        let mut part_digests = open.map(|open| open.part_digests.clone()).unwrap_or_default();
        part_digests.push(part.digest);
        if entry_digest(&part_digests) != Some(end.entry_digest) {
            return Err(Reason::Conflict(ConflictKind::EntryDigest));
        }
        lifetime.complete_entry(remembered_hash(part.checkpoint, end.part_count, end.entry_digest));
    } else {
        lifetime.keep_part(part.checkpoint, part.digest);
    }
    // Set with the first applied part, not with the first complete entry: the part is stored under this writer.
    lifetime.nonce = Some(part.nonce);
    let completes_entry = part.end.is_some();
    Ok(Outcome::Applied(Change::PartStored {
        entry_seq,
        part: part.number,
        completes_entry,
    }))
}

fn repeat_of_open_entry(lifetime: &Lifetime, part: &Part) -> Result<Outcome, Reason> {
    let same = lifetime.open_entry.as_ref().is_some_and(|open| {
        open.checkpoint == part.checkpoint
            && part.end.is_none()
            && open.part_digests.get(part.number as usize) == Some(&part.digest)
    });
    if same {
        Ok(Outcome::Duplicate { stale: false })
    } else {
        Err(Reason::Conflict(ConflictKind::PartAltered))
    }
}

fn repeat_of_complete_entry(lifetime: &Lifetime, part: &Part) -> Result<Outcome, Reason> {
    let Some(end) = &part.end else {
        return Ok(Outcome::Duplicate { stale: false });
    };
    let hash = remembered_hash(part.checkpoint, end.part_count, end.entry_digest);
    match lifetime.remembered(part.lifetime_seq) {
        Remembered::Hash(remembered) if remembered == hash => Ok(Outcome::Duplicate { stale: false }),
        Remembered::TooOld => Ok(Outcome::Duplicate { stale: true }),
        Remembered::Hash(_) | Remembered::NotYet => Err(Reason::Conflict(ConflictKind::EntryAltered)),
    }
}
