//! What an index may claim. The hostile ones are well-formed protobuf with a right checksum: only their numbers lie.

use prost::Message as _;
use uuid::Uuid;
use wakelog_model::SessionId;
use wakelog_proto::v1;

use super::*;
use crate::Error;
use crate::names::SegmentKey;
use crate::segment::envelope::{IndexRead, read_index, wrap_index};
use crate::segment::{FRAME_BYTES, FULL_ENTRIES, MAX_FRAME_OBJECT_BYTES, MAX_INDEX_BYTES, MAX_PLAIN_BYTES};

const FRAMES_END: u64 = 70;

fn session() -> SessionId {
    SessionId(Uuid::from_u128(5))
}

/// Entries 4 to 6 with 10, 20 and 30 bytes; 5 is a checkpoint of a new lifetime; two frames of 30 and 40 object bytes.
fn message() -> v1::SegmentIndex {
    v1::SegmentIndex {
        format_version: FORMAT_VERSION,
        session_id: session().0.as_bytes().to_vec().into(),
        first_entry_seq: 4,
        entry_plain_lengths: vec![10, 20, 30],
        entry_digests: vec![9; 48].into(),
        checkpoint_positions: vec![1],
        lifetimes: vec![
            v1::SegmentLifetime {
                lifetime_id: vec![1; 16].into(),
                generation: 1,
                entries: 1,
            },
            v1::SegmentLifetime {
                lifetime_id: vec![2; 16].into(),
                generation: 2,
                entries: 2,
            },
        ],
        frame_plain_lengths: vec![25, 35],
        frame_object_lengths: vec![30, 40],
    }
}

fn read(message: &v1::SegmentIndex) -> Result<SegmentIndex, Error> {
    let key = SegmentKey::new(session(), 4, 6, &[0; 32]);
    read_as(&key, message)
}

fn read_as(key: &SegmentKey, message: &v1::SegmentIndex) -> Result<SegmentIndex, Error> {
    let envelope = wrap_index(&message.encode_to_vec()).unwrap();
    let object_bytes = FRAMES_END + envelope.len() as u64;
    match read_index(key, object_bytes, &envelope)? {
        IndexRead::Index(index) => Ok(index),
        IndexRead::Wanted(range) => panic!("all of it is there, yet {range:?} is wanted"),
    }
}

fn assert_damaged(what: &str, result: Result<SegmentIndex, Error>) {
    match result {
        Err(Error::SegmentDamaged { .. }) => {}
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn offsets_are_the_sums_of_the_lengths() {
    let index = read(&message()).unwrap();
    assert_eq!(index.session(), session());
    assert_eq!(index.plain_bytes(), 60);
    assert_eq!(index.frames_bytes(), FRAMES_END);
    let entries: Vec<_> = index.entries().iter().collect();
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry.entry_seq,
                entry.plain_offset,
                entry.checkpoint,
                entry.generation,
            )
        })
        .collect();
    assert_eq!(seen, [(4, 0, false, 1), (5, 10, true, 2), (6, 30, false, 2)]);
    assert_eq!(index.entry(5), Some(entries[1]));
    assert_eq!(index.entry(3), None);
    assert_eq!(index.entry(7), None);
    assert_eq!(index.entry(u64::MAX), None);
    let frames: Vec<_> = index
        .frames()
        .iter()
        .map(|frame| (frame.object_offset, frame.plain_offset))
        .collect();
    assert_eq!(frames, [(0, 0), (30, 25)]);
    assert_eq!(index.encode(), message().encode_to_vec());
}

#[test]
fn a_version_that_is_not_known_is_said() {
    for version in [0, 2, u32::MAX] {
        let message = v1::SegmentIndex {
            format_version: version,
            ..message()
        };
        let error = read(&message).unwrap_err();
        assert!(
            matches!(error, Error::UnknownFormat { version: found, known: FORMAT_VERSION, .. } if found == version),
            "{error}"
        );
    }
}

#[test]
fn hostile_numbers_are_refused() {
    type Change = fn(&mut v1::SegmentIndex);
    let changes: &[(&str, Change)] = &[
        ("no entries", |index| index.entry_plain_lengths.clear()),
        ("too many entries", |index| {
            index.entry_plain_lengths = vec![1; FULL_ENTRIES + 1];
            index.entry_digests = vec![0; 16 * (FULL_ENTRIES + 1)].into();
        }),
        ("a digest too few", |index| {
            index.entry_digests = vec![0; 32].into()
        }),
        ("half a digest", |index| index.entry_digests = vec![0; 40].into()),
        ("an empty entry", |index| {
            index.entry_plain_lengths = vec![0, 30, 30]
        }),
        ("an entry larger than any", |index| {
            index.entry_plain_lengths[2] = u64::MAX;
        }),
        ("lengths that overflow", |index| {
            index.entry_plain_lengths = vec![u64::MAX, 1, 60];
        }),
        ("entries longer than the frames", |index| {
            index.entry_plain_lengths[2] += 1;
        }),
        ("entries shorter than the frames", |index| {
            index.entry_plain_lengths[2] -= 1;
        }),
        ("entries behind a full segment", |index| {
            index.entry_plain_lengths = vec![1 << 30, 1 << 30, 1 << 30];
        }),
        ("another session", |index| index.session_id = vec![1; 16].into()),
        ("no session", |index| index.session_id = vec![].into()),
        ("another first entry", |index| index.first_entry_seq = 5),
        ("numbers that overflow", |index| index.first_entry_seq = u64::MAX),
        ("an entry that the name lacks", |index| {
            index.entry_plain_lengths.push(1);
            index.entry_digests = vec![0; 64].into();
        }),
        ("checkpoints that do not ascend", |index| {
            index.checkpoint_positions = vec![1, 1];
        }),
        ("a checkpoint beyond the end", |index| {
            index.checkpoint_positions = vec![3];
        }),
        ("no lifetimes", |index| index.lifetimes.clear()),
        ("a lifetime too short an id", |index| {
            index.lifetimes[0].lifetime_id = vec![1; 15].into();
        }),
        ("a lifetime without entries", |index| {
            index.lifetimes[0].entries = 0;
        }),
        ("lifetimes with too many entries", |index| {
            index.lifetimes[1].entries = u64::MAX;
        }),
        ("lifetimes with too few entries", |index| {
            index.lifetimes[1].entries = 1;
        }),
        ("no frames", |index| {
            index.frame_plain_lengths.clear();
            index.frame_object_lengths.clear();
        }),
        ("too many frames", |index| {
            index.frame_plain_lengths = vec![1; 10_000];
            index.frame_object_lengths = vec![1; 10_000];
        }),
        ("a frame without object bytes", |index| {
            index.frame_object_lengths = vec![0, 70];
        }),
        ("a frame length too few", |index| {
            index.frame_object_lengths = vec![70];
        }),
        ("an empty frame", |index| index.frame_plain_lengths = vec![0, 60]),
        ("a frame that decodes to too much", |index| {
            index.frame_plain_lengths[1] = FRAME_BYTES as u64 + 1;
        }),
        ("a frame that takes too much", |index| {
            index.frame_object_lengths[1] = MAX_FRAME_OBJECT_BYTES + 1;
        }),
        ("frame lengths that overflow", |index| {
            index.frame_object_lengths = vec![u64::MAX, 71];
        }),
        ("frames that end before the index", |index| {
            index.frame_object_lengths[1] -= 1;
        }),
        ("frames that reach into the index", |index| {
            index.frame_object_lengths[1] += 1;
        }),
    ];
    for (what, change) in changes {
        let mut hostile = message();
        change(&mut hostile);
        assert_damaged(what, read(&hostile));
    }
}

#[test]
fn the_largest_index_that_the_limits_allow_fits() {
    let entries = FULL_ENTRIES;
    let seq = i64::MAX as u64 - entries as u64;
    let first_length = 3_000;
    let mut lengths = vec![first_length; entries];
    lengths[entries - 1] = MAX_PLAIN_BYTES - first_length * (entries as u64 - 1);
    lengths[entries - 1] = lengths[entries - 1].min(wakelog_model::limits::MAX_ENTRY_BYTES);
    let plain: u64 = lengths.iter().sum();
    let half = FRAME_BYTES as u64 / 2;
    let frames = plain.div_ceil(half);
    let mut frame_plain_lengths = vec![half; frames as usize];
    frame_plain_lengths[frames as usize - 1] = plain - half * (frames - 1);
    let message = v1::SegmentIndex {
        first_entry_seq: seq,
        entry_plain_lengths: lengths,
        entry_digests: vec![0xff; entries * 16].into(),
        checkpoint_positions: (0..entries as u32).collect(),
        lifetimes: (0..entries)
            .map(|position| v1::SegmentLifetime {
                lifetime_id: vec![position as u8; 16].into(),
                generation: u64::MAX - position as u64,
                entries: 1,
            })
            .collect(),
        frame_object_lengths: vec![half; frames as usize],
        frame_plain_lengths,
        ..message()
    };
    let encoded = message.encode_to_vec();
    assert!(encoded.len() < MAX_INDEX_BYTES * 2 / 3, "{}", encoded.len());
    let key = SegmentKey::new(session(), seq, seq + entries as u64 - 1, &[0; 32]);
    let index = SegmentIndex::decode(&key, &encoded, half * frames).unwrap();
    assert_eq!(index.entries().len(), entries);
    assert_eq!(index.encode(), encoded);
}

#[test]
fn an_envelope_that_lies_about_its_length_is_refused() {
    let key = SegmentKey::new(session(), 4, 6, &[0; 32]);
    let envelope = wrap_index(&message().encode_to_vec()).unwrap();
    let object_bytes = FRAMES_END + envelope.len() as u64;
    let length_at = envelope.len() - 16;
    for claimed in [0, 1, 1000, MAX_INDEX_BYTES as u32, u32::MAX - 8, u32::MAX] {
        let mut hostile = envelope.clone();
        hostile[length_at..length_at + 4].copy_from_slice(&claimed.to_le_bytes());
        let error = read_index(&key, object_bytes, &hostile).unwrap_err();
        assert!(
            matches!(error, Error::SegmentDamaged { .. }),
            "{claimed}: {error}"
        );
    }
    // More bytes than the object has, and too few to hold anything.
    assert!(read_index(&key, 10, &envelope).is_err());
    assert!(read_index(&key, object_bytes, &envelope[envelope.len() - 15..]).is_err());
    assert!(read_index(&key, 0, &[]).is_err());
}

#[test]
fn a_short_end_says_what_is_wanted() {
    let key = SegmentKey::new(session(), 4, 6, &[0; 32]);
    let envelope = wrap_index(&message().encode_to_vec()).unwrap();
    let object_bytes = FRAMES_END + envelope.len() as u64;
    for given in 16..envelope.len() {
        let end = &envelope[envelope.len() - given..];
        match read_index(&key, object_bytes, end).unwrap() {
            IndexRead::Wanted(range) => assert_eq!(range, FRAMES_END..object_bytes),
            IndexRead::Index(_) => panic!("{given} of {} bytes are enough", envelope.len()),
        }
    }
}

#[test]
fn every_flipped_bit_of_the_envelope_is_noticed() {
    let key = SegmentKey::new(session(), 4, 6, &[0; 32]);
    let envelope = wrap_index(&message().encode_to_vec()).unwrap();
    let object_bytes = FRAMES_END + envelope.len() as u64;
    for byte in 0..envelope.len() {
        for bit in 0..8 {
            let mut flipped = envelope.clone();
            flipped[byte] ^= 1 << bit;
            let read = read_index(&key, object_bytes, &flipped);
            // A length that became larger asks for more bytes, which then do not fit either.
            let noticed = match read {
                Err(_) => true,
                Ok(IndexRead::Wanted(range)) => {
                    (range.end - range.start) as usize > envelope.len() && byte >= envelope.len() - 16
                }
                Ok(IndexRead::Index(_)) => false,
            };
            assert!(noticed, "byte {byte} bit {bit}");
        }
    }
}
