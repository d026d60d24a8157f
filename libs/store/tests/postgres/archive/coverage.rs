use std::collections::{BTreeMap, BTreeSet};

use wakelog_model::SessionId;
use wakelog_store::{BatchWrites, Coverage, SnapshotRow, Store};

use crate::support::Database;
use crate::support::archive::entries;
use crate::support::rows::{Owner, TOPIC, session, session_write};

on_both_pools!(
    coverage_is_what_every_session_has_a_state_of,
    an_erased_session_is_covered_once_it_is_swept,
    states_of_an_earlier_incarnation_cover_nothing_of_this_one,
    recorded_coverage_only_rises_within_an_incarnation,
    archived_is_complete_coverage_never_exceeds_the_states_over_random_histories,
);

async fn covered(store: &Store) -> u64 {
    store.coverage(TOPIC, 0).await.unwrap().coverage.covered_offset
}

async fn read_state(store: &Store, session: SessionId) -> SnapshotRow {
    let source = store.snapshot_source(TOPIC, session).await.unwrap().unwrap();
    SnapshotRow {
        session,
        incarnation: source.incarnation,
        next_offset: source.next_offset,
        last_entry_seq: source.last_entry_seq,
        row_version: source.row_version,
    }
}

async fn take_state(store: &Store, session: SessionId) {
    let state = read_state(store, session).await;
    assert!(store.record_snapshot(TOPIC, &state).await.unwrap());
}

async fn coverage_is_what_every_session_has_a_state_of(database: Database) {
    let store = database.store().await;
    assert_eq!(covered(&store).await, 0);
    let mut owner = Owner::claim(&store).await;
    owner.write(BatchWrites::default()).await;
    // No session: nothing of what is folded is needed.
    assert_eq!(covered(&store).await, 1);
    owner.write(entries(session(1), 1, 3, 0)).await;
    assert_eq!(covered(&store).await, 0);
    take_state(&store, session(1)).await;
    assert_eq!(covered(&store).await, 2);
    owner.write(BatchWrites::default()).await;
    assert_eq!(covered(&store).await, 3);
    owner.write(entries(session(1), 4, 4, 0)).await;
    assert_eq!(covered(&store).await, 2);
    owner.write(entries(session(2), 1, 1, 0)).await;
    assert_eq!(covered(&store).await, 0);
    take_state(&store, session(2)).await;
    assert_eq!(covered(&store).await, 2);
    take_state(&store, session(1)).await;
    assert_eq!(covered(&store).await, 5);
    let now = store.coverage(TOPIC, 0).await.unwrap();
    assert_eq!((now.next_offset, now.last_record_crc), (5, Some(7)));
    let nothing = store.coverage(TOPIC, 1).await.unwrap();
    assert_eq!((nothing.next_offset, nothing.last_record_crc), (0, None));
    assert_eq!(store.coverage(TOPIC, 1).await.unwrap().coverage.covered_offset, 0);
    assert_eq!(
        store
            .coverage("another", 0)
            .await
            .unwrap()
            .coverage
            .covered_offset,
        0
    );
}

async fn an_erased_session_is_covered_once_it_is_swept(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 3, 0)).await;
    take_state(&store, session(1)).await;
    owner
        .write(BatchWrites {
            erased: vec![session(1)],
            ..BatchWrites::default()
        })
        .await;
    assert_eq!(covered(&store).await, 1);
    store.record_sweep(session(1)).await.unwrap();
    assert_eq!(covered(&store).await, 2);
}

async fn states_of_an_earlier_incarnation_cover_nothing_of_this_one(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 3, 0)).await;
    owner.write(entries(session(2), 1, 3, 0)).await;
    take_state(&store, session(1)).await;
    take_state(&store, session(2)).await;
    database
        .execute(
            "INSERT INTO topic_incarnations VALUES ('wakelog.transcript', 2);
             UPDATE stream_progress SET next_offset = 0",
        )
        .await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 4, 4, 0)).await;
    let none = Coverage {
        incarnation: 2,
        covered_offset: 0,
    };
    assert_eq!(store.coverage(TOPIC, 0).await.unwrap().coverage, none);
    // The other session has no records in this incarnation: its state of the earlier one is the whole of it.
    take_state(&store, session(1)).await;
    assert_eq!(covered(&store).await, 1);
}

async fn recorded_coverage_only_rises_within_an_incarnation(database: Database) {
    let store = database.store().await;
    assert_eq!(store.recorded_coverage(TOPIC, 0).await.unwrap(), None);
    let steps = [
        ((1, 5), (1, 5)),
        ((1, 3), (1, 5)),
        ((1, 8), (1, 8)),
        ((2, 1), (2, 1)),
        ((1, 9), (2, 1)),
    ];
    for ((incarnation, covered_offset), (current, highest)) in steps {
        let coverage = Coverage {
            incarnation,
            covered_offset,
        };
        let expected = Coverage {
            incarnation: current,
            covered_offset: highest,
        };
        let recorded = store.record_coverage(TOPIC, 0, coverage).await.unwrap();
        assert_eq!(recorded, expected);
        assert_eq!(store.recorded_coverage(TOPIC, 0).await.unwrap(), Some(expected));
    }
    assert_eq!(store.recorded_coverage(TOPIC, 1).await.unwrap(), None);
}

/// Small, repeatable random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// What a rebuild would find, kept without looking at row versions.
#[derive(Default)]
struct Model {
    /// Offsets of the records of each session.
    records: BTreeMap<SessionId, BTreeSet<u64>>,
    /// Offsets of the states of each session that were recorded.
    states: BTreeMap<SessionId, BTreeSet<u64>>,
    swept: BTreeSet<SessionId>,
}

impl Model {
    /// Whether nothing below the offset is needed: each session with a record there has a state that holds it.
    fn can_lose_what_is_below(&self, offset: u64) -> bool {
        self.records.iter().all(|(session, records)| {
            let newest_state = self.states.get(session).and_then(BTreeSet::last);
            let held = newest_state.copied().unwrap_or(0);
            self.swept.contains(session) || records.range(held.min(offset)..offset).next().is_none()
        })
    }
}

const SESSIONS: u64 = 5;
const STEPS: u64 = 60;
const HISTORIES: u64 = 6;

async fn archived_is_complete_coverage_never_exceeds_the_states_over_random_histories(database: Database) {
    let store = database.store().await;
    for history in 1..=HISTORIES {
        database
            .execute(
                "TRUNCATE agent_sessions, session_pins, stream_progress, session_archive_snapshots,
                          session_archive_erasures",
            )
            .await;
        random_history(&store, Random(0x9e37_79b9_7f4a_7c15 ^ history)).await;
    }
}

async fn random_history(store: &Store, mut random: Random) {
    let mut owner = Owner::claim(store).await;
    let mut model = Model::default();
    let mut erased = BTreeSet::new();
    // States that were read and are not recorded yet: an archiver that is slow.
    let mut pending: Vec<SnapshotRow> = Vec::new();
    let mut highest = 0;
    for step in 0..STEPS {
        let session = session(u128::from(1 + random.below(SESSIONS)));
        let is_open = model.records.contains_key(&session);
        let offset = owner.next_offset as u64;
        match random.below(12) {
            0..=3 if !erased.contains(&session) => {
                owner
                    .write(BatchWrites {
                        sessions: vec![session_write(session)],
                        ..BatchWrites::default()
                    })
                    .await;
                model.records.entry(session).or_default().insert(offset);
            }
            4 => owner.write(BatchWrites::default()).await,
            5..=7 if is_open && !erased.contains(&session) => {
                pending.push(read_state(store, session).await);
            }
            8..=9 if !pending.is_empty() => {
                let which = random.below(pending.len() as u64) as usize;
                let state = pending.swap_remove(which);
                if store.record_snapshot(TOPIC, &state).await.unwrap() {
                    let states = model.states.entry(state.session).or_default();
                    states.insert(state.next_offset);
                }
            }
            10 if is_open && step > STEPS / 2 && erased.insert(session) => {
                owner
                    .write(BatchWrites {
                        erased: vec![session],
                        ..BatchWrites::default()
                    })
                    .await;
                model.records.entry(session).or_default().insert(offset);
            }
            11 => match store.snapshots(session).await.unwrap().as_slice() {
                [newest, ..] if !erased.contains(&session) => {
                    store
                        .drop_snapshots_before(session, 1, newest.next_offset)
                        .await
                        .unwrap();
                }
                _ if erased.contains(&session) => {
                    store.record_sweep(session).await.unwrap();
                    model.swept.insert(session);
                    model.states.remove(&session);
                }
                _ => {}
            },
            _ => {}
        }
        let now = covered(store).await;
        assert!(now <= owner.next_offset as u64);
        // What was covered once stays so: that is why the recorded offset may keep to the highest.
        highest = highest.max(now);
        assert!(model.can_lose_what_is_below(highest), "step {step}: {highest}");
    }
    // Once everybody has a state or is swept, nothing is needed.
    for session in model.records.keys() {
        match erased.contains(session) {
            true => store.record_sweep(*session).await.unwrap(),
            false => take_state(store, *session).await,
        }
    }
    assert_eq!(covered(store).await, owner.next_offset as u64);
}
