//! byte-exact: what was archived is what is read, whole and in ranges.

use std::io::Read as _;

use proptest::prelude::*;
use wakelog_archive::{SpoolOptions, verify_spool};
use wakelog_model::limits::PART_SIZE;
use wakelog_model::{part_digest, split_parts};

use crate::support::{entries, head, index, noise, object, read, seal, seal_in};

fn entry() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 1..300),
        2 => Just(b"\n".to_vec()),
        2 => Just(b"\r\n\0\r\n".to_vec()),
        2 => Just(vec![0]),
        2 => (1_usize..80_000).prop_map(|length| b"{\"type\":\"message\"}\n".repeat(length / 19 + 1)),
        1 => (0_usize..3, any::<u64>()).prop_map(|(over, seed)| noise(PART_SIZE - 1 + over, seed | 1)),
        1 => (0_usize..3, any::<u64>()).prop_map(|(over, seed)| noise(2 * PART_SIZE - 1 + over, seed | 1)),
        1 => (any::<u64>()).prop_map(|seed| noise(3 * PART_SIZE + 17, seed | 1)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn byte_exact_whole_and_in_every_range(
        bodies in prop::collection::vec(entry(), 1..12), first in 1_u64..1_000_000, memory_bytes in 0_usize..100_000,
    ) {
        let spooled = SpoolOptions { folder: None, memory_bytes };
        let segment = seal_in(spooled, first, &bodies);
        let last = first + bodies.len() as u64 - 1;
        let object = object(&segment);
        prop_assert_eq!((segment.min_entry_seq, segment.max_entry_seq), (first, last));
        prop_assert_eq!(segment.entries, bodies.len() as u64);
        prop_assert_eq!(segment.plain_bytes, bodies.iter().map(Vec::len).sum::<usize>() as u64);
        prop_assert_eq!(segment.object_bytes, object.len() as u64);

        // Any zstd tool sees the entries one after the other and nothing else.
        let mut decoded = Vec::new();
        zstd::stream::read::Decoder::new(&object[..]).unwrap().read_to_end(&mut decoded).unwrap();
        prop_assert!(decoded == bodies.concat());

        let verified = verify_spool(&segment.key, &segment.spool).unwrap();
        prop_assert_eq!(verified.object_digest, segment.object_digest);
        prop_assert_eq!(verified.entries, segment.entries);
        prop_assert_eq!(verified.plain_bytes, segment.plain_bytes);

        for from in 0..bodies.len() {
            for to in from..bodies.len() {
                let (parts, end) = read(&segment.key, &object, first + from as u64, first + to as u64);
                end.unwrap();
                let expected: Vec<_> = (first + from as u64..).zip(bodies[from..=to].iter().cloned()).collect();
                prop_assert!(entries(&parts) == expected, "{from} to {to}");
            }
        }
    }

    #[test]
    fn the_same_entries_give_the_same_object_wherever_it_is_spooled(
        bodies in prop::collection::vec(entry(), 1..6), memory_bytes in 0_usize..2_000_000,
    ) {
        let one = seal(1, &bodies);
        let other = seal_in(SpoolOptions { folder: None, memory_bytes }, 1, &bodies);
        prop_assert_eq!(one.key, other.key);
        prop_assert!(object(&one) == object(&other));
    }
}

#[test]
fn parts_are_those_of_the_log() {
    let body = noise(2 * PART_SIZE + 5, 3);
    let segment = seal(35, &[b"before".to_vec(), body.clone(), b"after".to_vec()]);
    let (parts, end) = read(&segment.key, &object(&segment), 36, 36);
    end.unwrap();
    let expected: Vec<_> = split_parts(&body.into()).collect();
    assert_eq!(parts.len(), expected.len());
    for ((part, bytes), number) in parts.iter().zip(&expected).zip(0..) {
        assert_eq!((part.entry_seq, part.part), (36, number));
        assert_eq!(part.last, number == 2);
        assert_eq!(part.bytes, bytes);
        assert_eq!(part.digest, part_digest(bytes));
        assert_eq!(part.checkpoint, head(36).checkpoint);
        assert_eq!(
            (part.generation, part.lifetime_id),
            (head(36).generation, head(36).lifetime_id)
        );
    }
    assert_eq!(segment.parts, 5);
}

#[test]
fn a_range_needs_only_the_frames_that_hold_it() {
    let bodies: Vec<_> = (1..=20).map(|seed| noise(PART_SIZE, seed)).collect();
    let segment = seal(1, &bodies);
    let object = object(&segment);
    let index = index(&segment.key, &object).unwrap();
    assert!(index.frames().len() >= 10, "{}", index.frames().len());
    let entry = index.entry(11).unwrap();
    let needed = |frame: &&wakelog_archive::IndexFrame| {
        frame.plain_offset < entry.plain_offset + entry.plain_length
            && frame.plain_offset + frame.plain_length > entry.plain_offset
    };
    // All other frames may be anything.
    let mut damaged = object.clone();
    damaged[..index.frames_bytes() as usize].fill(0x55);
    for frame in index.frames().iter().filter(needed) {
        let range = frame.object_offset as usize..(frame.object_offset + frame.object_length) as usize;
        damaged[range.clone()].copy_from_slice(&object[range]);
    }
    let (parts, end) = read(&segment.key, &damaged, 11, 11);
    end.unwrap();
    assert_eq!(entries(&parts), [(11, bodies[10].clone())]);
    let (parts, end) = read(&segment.key, &damaged, 9, 11);
    assert!(parts.is_empty());
    end.unwrap_err();
}

#[test]
fn a_full_segment_of_many_entries_needs_a_second_look_at_its_end() {
    let bodies: Vec<_> = (0..10_000_u32)
        .map(|number| format!("{{\"number\":{number}}}\n").into_bytes())
        .collect();
    let segment = seal(1, &bodies);
    let object = object(&segment);
    let index = index(&segment.key, &object).unwrap();
    assert!(object.len() as u64 - index.frames_bytes() > 64 * 1024);
    let (parts, end) = read(&segment.key, &object, 1, 10_000);
    end.unwrap();
    let expected: Vec<_> = (1..).zip(bodies).collect();
    assert!(entries(&parts) == expected);
}

/// The bytes of the format, pinned: another zstd, another level or another layout would give one entry two names.
/// `Cargo.lock` pins zstd. A change here is a new format version or at least a decision.
#[test]
fn the_format_is_what_it_was() {
    let bodies = [
        b"{\"type\":\"session\",\"version\":3}\n".to_vec(),
        b"{\"type\":\"message\",\"text\":\"hello\"}\n".to_vec(),
        b"\0\r\n\xff".to_vec(),
        b"{\"type\":\"compaction\"}\n".repeat(50_000),
    ];
    let segment = seal(6, &bodies);
    assert_eq!(hex::encode(segment.object_digest), GOLDEN_DIGEST);
    assert_eq!(
        segment.key.to_string(),
        format!(
            "sessions/00000000-0000-0000-0000-00000000feed/00000000000000000006-00000000000000000009-{}.jsonl.zst",
            &GOLDEN_DIGEST[..16]
        )
    );
}

const GOLDEN_DIGEST: &str = "855a0dc5344be00ae3a957c0fb5275bc02ff034994b7df7679568fd293d22286";
