use wakelog_fold::{Context, fold};
use wakelog_proto::v1::{AccessRole, SessionRecord};

use super::*;
use crate::testing::{PARTITION, TOPIC, access, bound, entry, entry_part, opened, session};

/// The session after these records, as the archiver writes it down at offset 90.
fn archived(records: &[SessionRecord]) -> ArchivedSession {
    let mut state = SessionState::default();
    let context = Context {
        partition: PARTITION,
        root_erased: false,
    };
    let mut lifetimes = Vec::new();
    for record in records {
        fold(&mut state, session(1), record, &context);
        if let Some(lifetime) = state.lifetime() {
            let archived = ArchivedLifetime {
                generation: lifetime.generation(),
                lifetime_id: Bytes::copy_from_slice(lifetime.id().as_bytes()),
                request_id: lifetime.request_id().to_owned(),
                base: lifetime.base(),
                body_start: lifetime.body_start(),
                writer_nonce: lifetime
                    .nonce()
                    .map_or_else(Bytes::new, |nonce| Bytes::copy_from_slice(nonce.as_bytes())),
                applied_seq: lifetime.last_seq(),
                status: lifetime.status().into(),
                bound_at_ms: 7,
            };
            lifetimes.truncate(lifetime.generation() as usize - 1);
            lifetimes.push(archived);
        }
    }
    ArchivedSession {
        format: 1,
        session_id: session(1).to_string(),
        topic: TOPIC.to_owned(),
        incarnation: 1,
        partition: PARTITION,
        next_offset: 90,
        unfinished_parts: state.lifetime().map_or(0, wakelog_fold::Lifetime::open_parts),
        unfinished_entry_seq: 0,
        fold_state: state.encode().into(),
        opened_at_us: 5,
        updated_at_us: 6,
        lifetimes,
    }
}

fn records() -> Vec<SessionRecord> {
    vec![
        opened(None),
        access("bob", AccessRole::Subscriber),
        access("eve", AccessRole::Subscriber),
        access("eve", AccessRole::Unspecified),
        bound(session(1), 1),
        entry(session(1), 1, 1, 3),
        bound(session(1), 2),
        entry(session(1), 2, 1, 4),
        entry_part(session(1), 2, 2, (0, 3), false, 5),
    ]
}

/// A state at this offset.
pub(in super::super) fn archived_at(next_offset: u64) -> ArchivedState {
    let archived = ArchivedSession {
        next_offset,
        ..archived(&records())
    };
    let key = SnapshotKey {
        session: session(1),
        incarnation: 1,
        offset: next_offset,
    };
    decode(TOPIC, key, archived.encode_to_vec().into()).unwrap()
}

fn read(archived: &ArchivedSession) -> Result<ArchivedState, String> {
    let key = SnapshotKey {
        session: session(1),
        incarnation: 1,
        offset: 90,
    };
    decode(TOPIC, key, archived.encode_to_vec().into())
}

/// Invariant exactly-once-fold: what is restored is what the fold knew, fences and revoked access included.
#[test]
fn exactly_once_fold_a_state_comes_back_with_its_fences_and_its_access() {
    let state = read(&archived(&records())).unwrap();
    assert_eq!((state.partition(), state.next_offset()), (PARTITION, 90));
    assert_eq!(state.unfinished.len(), 1);
    let RestoredSession {
        session: row,
        lifetimes,
        access,
        ..
    } = state.restored;
    assert_eq!(
        (row.last_entry_seq, row.generation, row.owner.as_str()),
        (2, 2, "ada")
    );
    let accounts: Vec<&str> = access.iter().map(|access| access.account.as_str()).collect();
    assert_eq!(accounts, ["bob"]);
    let generations: Vec<(u64, u64)> = lifetimes
        .iter()
        .map(|lifetime| (lifetime.generation, lifetime.base))
        .collect();
    assert_eq!(generations, [(1, 0), (2, 1)]);
}

/// Invariants one-writer, exactly-once-fold: a state that is not what it should be restores nothing.
#[test]
fn one_writer_a_state_that_is_damaged_is_refused() {
    let good = archived(&records());
    let spoil = |spoil: fn(&mut ArchivedSession)| {
        let mut bad = good.clone();
        spoil(&mut bad);
        read(&bad).unwrap_err()
    };
    let wrong = [
        (spoil(|state| state.format = 2), "version 2"),
        (spoil(|state| state.topic = "other".to_owned()), "topic other"),
        (spoil(|state| state.next_offset = 91), "its name"),
        (
            spoil(|state| state.session_id = session(2).to_string()),
            "its name",
        ),
        (spoil(|state| state.partition += 1), "two partitions"),
        (spoil(|state| state.unfinished_parts = 0), "unfinished"),
        (spoil(|state| drop(state.lifetimes.pop())), "lifetimes"),
        (spoil(|state| drop(state.lifetimes.remove(0))), "lifetimes"),
        (
            spoil(|state| state.fold_state = state.fold_state.slice(1..)),
            "state",
        ),
    ];
    for (said, expected) in wrong {
        // What is wrong with the fold's bytes depends on where they were cut.
        assert!(said.contains(expected) || expected == "state", "{said:?}");
    }
    assert!(
        decode(
            TOPIC,
            SnapshotKey {
                session: session(1),
                incarnation: 1,
                offset: 90
            },
            Bytes::from_static(b"\xff")
        )
        .is_err()
    );
}
