//! Damage is an error and never other bytes.

use proptest::prelude::*;
use wakelog_archive::{Error, SegmentKey, Spool, verify_spool};
use wakelog_model::limits::PART_SIZE;

use crate::support::{entries, index, noise, object, read, seal, session};

/// Whatever is handed out of the damaged object is what was archived.
fn assert_never_other_bytes(key: &SegmentKey, damaged: &[u8], bodies: &[Vec<u8>], what: &str) {
    let first = key.min_entry_seq;
    let (parts, end) = read(key, damaged, first, key.max_entry_seq);
    let expected: Vec<_> = (first..).zip(bodies.iter().cloned()).collect();
    let read = entries(&parts);
    assert!(read.len() <= expected.len(), "{what}");
    assert!(read == expected[..read.len()], "{what}: other bytes");
    if end.is_ok() {
        assert!(read == expected, "{what}: fewer entries and no error");
    }
    let error = end.err();
    assert!(
        matches!(
            error,
            None | Some(Error::SegmentDamaged { .. } | Error::UnknownFormat { .. })
        ),
        "{what}: {error:?}"
    );
    let whole = verify_spool(key, &Spool::from(bytes::Bytes::copy_from_slice(damaged)));
    assert!(whole.is_err(), "{what}: the verifier saw nothing");
}

fn small() -> Vec<Vec<u8>> {
    vec![
        b"{\"type\":\"session\"}\n".to_vec(),
        b"\0".to_vec(),
        b"{\"type\":\"message\",\"content\":\"the same again and again and again\"}\n".repeat(5),
    ]
}

#[test]
fn every_flipped_bit_of_a_small_object_is_noticed() {
    let bodies = small();
    let segment = seal(1, &bodies);
    let object = object(&segment);
    for byte in 0..object.len() {
        for bit in 0..8 {
            let mut damaged = object.clone();
            damaged[byte] ^= 1 << bit;
            assert_never_other_bytes(
                &segment.key,
                &damaged,
                &bodies,
                &format!("byte {byte} bit {bit} of {}", object.len()),
            );
        }
    }
}

#[test]
fn every_truncation_of_a_small_object_is_noticed() {
    let bodies = small();
    let segment = seal(1, &bodies);
    let object = object(&segment);
    for length in 0..object.len() {
        assert_never_other_bytes(
            &segment.key,
            &object[..length],
            &bodies,
            &format!("the first {length}"),
        );
        let cut = &object[object.len() - length..];
        assert_never_other_bytes(&segment.key, cut, &bodies, &format!("the last {length}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn damage_of_a_large_object_is_noticed(at in any::<prop::sample::Index>(), with in 1..=255_u8, cut in any::<bool>()) {
        let bodies = [noise(PART_SIZE - 3, 1), noise(2 * PART_SIZE + 1, 2), b"end\n".to_vec(), noise(900_000, 3)];
        let segment = seal(4, &bodies);
        let mut damaged = object(&segment);
        let at = at.index(damaged.len());
        if cut {
            damaged.remove(at);
        } else {
            damaged[at] ^= with;
        }
        assert_never_other_bytes(&segment.key, &damaged, &bodies, &format!("at {at}, cut: {cut}"));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let key = SegmentKey::new(session(), 1, 3, &[0; 32]);
        assert_never_other_bytes(&key, &bytes, &[], "noise");
    }
}

#[test]
fn frames_of_another_segment_are_noticed() {
    // The same lengths, so that only the bytes tell them apart.
    let ours = seal(1, &[noise(3_000, 1), noise(3_000, 2)]);
    let theirs = seal(1, &[noise(3_000, 1), noise(3_000, 3)]);
    let index = index(&ours.key, &object(&ours)).unwrap();
    let mut mixed = object(&ours);
    let frames = index.frames_bytes() as usize;
    assert_eq!(object(&theirs).len(), mixed.len());
    mixed[..frames].copy_from_slice(&object(&theirs)[..frames]);
    let (parts, end) = read(&ours.key, &mixed, 1, 2);
    assert_eq!(entries(&parts).len(), 1);
    let error = end.unwrap_err();
    assert!(
        matches!(&error, Error::SegmentDamaged { entry_seq: Some(2), key, .. } if *key == ours.key.to_string()),
        "{error}"
    );
}

#[test]
fn an_object_under_another_name_is_noticed() {
    let segment = seal(5, &small());
    let object = object(&segment);
    let names = [
        SegmentKey {
            min_entry_seq: 4,
            ..segment.key
        },
        SegmentKey {
            max_entry_seq: 8,
            ..segment.key
        },
        SegmentKey {
            min_entry_seq: 6,
            max_entry_seq: 8,
            ..segment.key
        },
        SegmentKey {
            session: wakelog_model::SessionId(uuid::Uuid::from_u128(1)),
            ..segment.key
        },
    ];
    for name in names {
        let (parts, end) = read(&name, &object, name.min_entry_seq, name.max_entry_seq);
        assert!(parts.is_empty());
        assert!(matches!(end, Err(Error::SegmentDamaged { .. })), "{name}");
    }
    let digest = SegmentKey {
        digest_start: [0; 8],
        ..segment.key
    };
    let error = verify_spool(&digest, &segment.spool).unwrap_err();
    assert!(matches!(error, Error::SegmentDamaged { .. }), "{error}");
}

#[test]
fn entries_that_the_segment_lacks_are_said() {
    let segment = seal(5, &small());
    let object = object(&segment);
    for (first, last) in [(4, 5), (5, 8), (8, 8), (7, 6), (0, 0), (1, u64::MAX)] {
        let (parts, end) = read(&segment.key, &object, first, last);
        assert!(parts.is_empty());
        assert!(
            matches!(end, Err(Error::NotInSegment { .. })),
            "{first} to {last}: {end:?}"
        );
    }
}
