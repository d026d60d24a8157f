//! Any cut of a log into batches, with deaths in between, leaves what the log says: checked against the fold of
//! `verify`, which knows no batches.

use std::collections::BTreeMap;

use proptest::prelude::*;
use wakelog_model::SessionId;
use wakelog_proto::v1::{AccessRole, SessionRecord};

use crate::decode::{Decoded, decode};
use crate::states::States;
use crate::testing::{
    Harness, MemoryStore, PARTITION, access, bound, ended, entry_part, erased, log_record, opened,
    raw_record, session,
};
use crate::verify::refold::{ExpectedLifetime, ExpectedPart, Refold};

/// What a step of a script does, mostly something that can be applied.
#[derive(Debug, Clone, Copy)]
struct Step {
    session: u8,
    kind: u8,
    deviation: u8,
    flavour: u8,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (1..=3_u8, 0..32_u8, 0..8_u8, 0..4_u8);
    let step = step.prop_map(|(session, kind, deviation, flavour)| Step {
        session,
        kind,
        deviation,
        flavour,
    });
    proptest::collection::vec(step, 1..60)
}

/// The record of a step, given what came before. Session 2 is below 1, and 3 below 2.
fn record_of(step: Step, states: &States) -> SessionRecord {
    let of = session(step.session);
    let state = states.get(of);
    let Some(state) = state.filter(|state| state.is_known()) else {
        return opened((step.session > 1).then(|| session(step.session - 1)));
    };
    let generation = state.generation();
    let Some(lifetime) = state.lifetime() else {
        return bound(of, 1);
    };
    match step.kind {
        0 => erased(),
        1 => opened(None),
        2 => ended(of, generation),
        3 => access(
            "bob",
            if step.flavour == 0 {
                AccessRole::Unspecified
            } else {
                AccessRole::Subscriber
            },
        ),
        4..=7 => bound(
            of,
            if step.deviation == 0 {
                generation
            } else {
                generation + 1
            },
        ),
        _ => {
            let generation = if step.deviation == 1 {
                generation.saturating_sub(1).max(1)
            } else {
                generation
            };
            let seq = match step.deviation {
                2 => lifetime.last_seq().max(1),
                3 => lifetime.last_seq() + 2,
                _ => lifetime.last_seq() + 1,
            };
            let parts = if step.kind < 12 || lifetime.open_parts() > 0 {
                2
            } else {
                1
            };
            let part = if step.deviation == 4 {
                0
            } else {
                lifetime.open_parts().min(parts - 1)
            };
            let fill = if step.deviation == 5 { b'z' } else { b'a' };
            entry_part(of, generation, seq, (part, parts), step.flavour == 0, fill)
        }
    }
}

fn log_of(steps: &[Step]) -> Vec<Decoded> {
    let mut states = States::new(PARTITION);
    let mut log = Vec::new();
    for (step, offset) in steps.iter().zip(0..) {
        let of = session(step.session);
        if (step.kind, step.deviation) == (31, 7) {
            log.push(decode(&raw_record(offset, &of.to_string(), b"\xff\xff")));
            continue;
        }
        let record = record_of(*step, &states);
        states.fold(of, &record);
        log.push(decode(&log_record(offset, of, &record)));
    }
    log
}

#[derive(Debug, PartialEq, Eq, Default)]
struct Contents {
    states: BTreeMap<SessionId, [u8; 32]>,
    parts: BTreeMap<(SessionId, u64, u32), ExpectedPart>,
    lifetimes: BTreeMap<(SessionId, u64), ExpectedLifetime>,
    quarantined: BTreeMap<String, u64>,
}

fn contents_by_refold(log: &[Decoded]) -> Contents {
    let mut refold = Refold::new(PARTITION);
    log.iter().for_each(|record| refold.take(record));
    let mut contents = Contents::default();
    for of in refold.opened_sessions() {
        contents.states.insert(of, refold.state(of).unwrap().digest());
        let Some(expected) = refold.session(of) else {
            continue;
        };
        contents.parts.extend(
            expected
                .parts
                .iter()
                .map(|((seq, part), row)| ((of, *seq, *part), *row)),
        );
        contents.lifetimes.extend(
            expected
                .lifetimes
                .iter()
                .map(|(number, row)| ((of, *number), row.clone())),
        );
    }
    contents.quarantined = refold
        .quarantined()
        .iter()
        .map(|(reason, count)| ((*reason).to_owned(), *count))
        .collect();
    contents
}

fn contents_of(store: &MemoryStore) -> Contents {
    let mut contents = Contents::default();
    for (of, write) in &store.sessions {
        let state = wakelog_fold::SessionState::decode(&write.state).unwrap();
        assert_eq!(
            (
                write.last_entry_seq,
                write.last_checkpoint_seq,
                write.generation,
                write.erased
            ),
            (
                state.last_entry_seq(),
                state.last_checkpoint_seq(),
                state.generation(),
                state.is_erased()
            )
        );
        contents.states.insert(*of, state.digest());
    }
    for (key, row) in &store.parts {
        let part = ExpectedPart {
            checkpoint: row.checkpoint,
            last: row.last,
            generation: row.generation,
            plain_length: row.plain_length,
            part_digest: Some(row.part_digest),
        };
        contents.parts.insert(*key, part);
    }
    for (key, row) in &store.lifetimes {
        let lifetime = ExpectedLifetime {
            lifetime_id: row.lifetime_id,
            request_id: row.request_id.clone(),
            base: row.base,
            body_start: row.body_start,
            nonce: row.nonce,
            applied_seq: row.applied_seq,
            status: row.status,
        };
        contents.lifetimes.insert(*key, lifetime);
    }
    for record in &store.quarantined {
        *contents.quarantined.entry(record.reason.to_owned()).or_default() += 1;
    }
    contents
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_cut_into_batches_gives_what_the_log_says(
        steps in steps(),
        cuts in proptest::collection::vec((1..12_usize, any::<bool>()), 1..60),
    ) {
        let log = log_of(&steps);
        let mut harness = Harness::default();
        let mut rest = log.as_slice();
        for (length, dies) in cuts.iter().copied().cycle() {
            if rest.is_empty() {
                break;
            }
            let (batch, later) = rest.split_at(length.min(rest.len()));
            harness.batch_of_decoded(batch);
            if dies {
                harness.die();
            }
            rest = later;
        }
        prop_assert_eq!(contents_of(&harness.store), contents_by_refold(&log));
    }
}
