//! Any record, any bytes: no panic, at most one entry more, and a state that can be stored and read.

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message as _;
use wakelog_fold::{Context, SessionState, fold};
use wakelog_proto::v1::session_record::Record;
use wakelog_proto::v1::{
    AccessChanged, EntryPart, FoldState, LifetimeBound, LifetimeEnded, SessionErased, SessionOpened,
    SessionRecord,
};

use crate::bench::Bench;
use crate::properties::config;
use crate::records::{HERE, Variant, bind, entry, opened, session};
use crate::world::{World, plan};

fn number() -> impl Strategy<Value = u64> {
    let ends = prop::sample::select(vec![
        1 << 63,
        (1 << 63) - 1,
        (1 << 63) - 2,
        u64::MAX,
        u64::MAX - 1,
    ]);
    prop_oneof![12 => 0_u64..4, 1 => ends, 1 => any::<u64>()]
}

fn small() -> impl Strategy<Value = u32> {
    let ends = prop::sample::select(vec![2047, 2048, 524_288, 524_289, u32::MAX]);
    prop_oneof![8 => 0_u32..4, 1 => ends, 1 => any::<u32>()]
}

fn some_bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        (0_u8..3).prop_map(|byte| Bytes::from(vec![byte; 16])),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("request".to_owned()),
        prop::collection::vec(any::<char>(), 0..140).prop_map(String::from_iter)
    ]
}

fn lifetime() -> impl Strategy<Value = LifetimeBound> {
    let any_bind =
        (some_bytes(), number(), text()).prop_map(|(lifetime_id, generation, request_id)| LifetimeBound {
            lifetime_id,
            generation,
            request_id,
        });
    prop_oneof![
        8 => (0_u64..4).prop_map(|generation| bind(generation, "request")),
        1 => (number(), text()).prop_map(|(generation, request)| bind(generation, &request)),
        1 => any_bind,
    ]
}

/// A part that fits, mostly, with a few fields replaced.
fn part() -> impl Strategy<Value = EntryPart> {
    let fitting = (
        lifetime(),
        0_u8..2,
        number(),
        any::<bool>(),
        1_usize..4,
        0_usize..4,
    )
        .prop_map(|(lifetime, nonce, seq, checkpoint, count, pick)| {
            let bodies = &["a", "b", "c"][..count];
            entry(&lifetime, nonce, seq, checkpoint, bodies).swap_remove(pick % count)
        });
    let replacement = (0_u8..12, number(), small(), some_bytes());
    (fitting, prop::collection::vec(replacement, 0..2)).prop_map(|(mut part, replacements)| {
        for (field, number, small, bytes) in replacements {
            match field {
                0 => part.lifetime_id = bytes,
                1 => part.generation = number,
                2 => part.writer_nonce = bytes,
                3 => part.lifetime_seq = number,
                4 => part.part = small,
                5 => part.last = !part.last,
                6 => part.checkpoint = !part.checkpoint,
                7 => part.encoding = small as i32,
                8 => part.plain_length = small,
                9 => part.part_digest = bytes,
                10 => part.part_count = small,
                _ => part.entry_digest = bytes,
            }
        }
        part
    })
}

fn session_opened() -> impl Strategy<Value = SessionOpened> {
    let any_opened = (
        text(),
        prop::collection::btree_map(text(), text(), 0..40),
        text(),
        text(),
        4_i32..7,
    )
        .prop_map(
            |(owner, labels, parent_session_id, subpath, partition)| SessionOpened {
                owner,
                labels,
                parent_session_id,
                subpath,
                partition,
            },
        );
    prop_oneof![Just(opened()), any_opened]
}

fn record() -> impl Strategy<Value = SessionRecord> {
    let access = (text(), -1_i32..4).prop_map(|(account, role)| AccessChanged { account, role });
    let ended = prop_oneof![
        lifetime().prop_map(|lifetime| LifetimeEnded {
            lifetime_id: lifetime.lifetime_id
        }),
        some_bytes().prop_map(|lifetime_id| LifetimeEnded { lifetime_id }),
    ];
    prop_oneof![
        40 => part().prop_map(Record::EntryPart).prop_map(Some),
        8 => lifetime().prop_map(Record::LifetimeBound).prop_map(Some),
        3 => access.prop_map(Record::AccessChanged).prop_map(Some),
        3 => ended.prop_map(Record::LifetimeEnded).prop_map(Some),
        2 => session_opened().prop_map(Record::SessionOpened).prop_map(Some),
        1 => Just(Some(Record::SessionErased(SessionErased {}))),
        1 => Just(None),
    ]
    .prop_map(|record| SessionRecord { record })
}

fn context() -> impl Strategy<Value = Context> {
    prop_oneof![
        20 => Just(HERE),
        1 => (4_i32..7, any::<bool>()).prop_map(|(partition, root_erased)| Context { partition, root_erased }),
    ]
}

fn check_step(bench: &mut Bench, record: &SessionRecord, context: Context) {
    let (entries, generation) = (bench.state.last_entry_seq(), bench.state.generation());
    bench.fold_in(record, context);
    assert!((0..=1).contains(&(bench.state.last_entry_seq() - entries)));
    assert!((0..=1).contains(&(bench.state.generation() - generation)));
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn any_record_is_decided(records in prop::collection::vec((record(), context()), 0..60)) {
        let mut bench = Bench::opened();
        for (record, context) in &records {
            check_step(&mut bench, record, *context);
        }
    }

    #[test]
    fn any_record_is_decided_at_the_ends_of_the_numbers(
        records in prop::collection::vec(record(), 0..20),
        below in 0_u64..3,
        generation in 1_u64..3,
    ) {
        let base = i64::MAX as u64 - below;
        let mut bound = FoldState { opened: Some(opened()), last_entry_seq: base, ..FoldState::default() };
        let LifetimeBound { lifetime_id, request_id, .. } = bind(generation, "request");
        bound.lifetime = Some(wakelog_proto::v1::LifetimeFoldState {
            lifetime_id, generation, request_id, base, body_start: base, status: 1, ..Default::default()
        });
        let mut bench = Bench { state: SessionState::decode(&bound.encode_to_vec()).unwrap() };
        for record in &records {
            check_step(&mut bench, record, HERE);
        }
    }

    #[test]
    fn any_bytes_that_are_a_record_are_decided(
        record in record(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 0..4),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut flipped = record.encode_to_vec();
        for (index, bit) in flips {
            if !flipped.is_empty() {
                let index = index.index(flipped.len());
                flipped[index] ^= 1 << bit;
            }
        }
        let (mut bench, lifetime) = Bench::bound();
        bench.apply(&entry(&lifetime, 1, 1, true, &["a", "b"]));
        for bytes in [flipped, bytes] {
            if let Ok(record) = SessionRecord::decode(bytes.as_slice()) {
                check_step(&mut bench, &record, HERE);
            }
        }
    }

    /// Stored bytes that were tampered with are refused, or are a state like any other.
    #[test]
    fn any_bytes_that_are_a_state_can_be_folded_on(
        plan in plan(20),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 0..3),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        records in prop::collection::vec(record(), 0..6),
    ) {
        let mut flipped = World::run(&plan).state.encode();
        for (index, bit) in flips {
            let index = index.index(flipped.len());
            flipped[index] ^= 1 << bit;
        }
        for bytes in [flipped, bytes] {
            let Ok(mut state) = SessionState::decode(&bytes) else {
                continue;
            };
            prop_assert_eq!(state.encode(), bytes);
            for record in &records {
                fold(&mut state, session(), &record.record(), &HERE);
                prop_assert_eq!(SessionState::decode(&state.encode()), Ok(state.clone()));
            }
        }
    }
}
