//! Splitting at fixed offsets: every way to cut the same bytes gives the same parts, and they are the bytes.

use bytes::Bytes;
use proptest::prelude::*;
use wakelog_model::limits::{MAX_ENTRY_BYTES, MAX_PARTS, PART_SIZE};
use wakelog_model::{Error, PartSplitter, check_part_length, split_parts};

use crate::config;

/// Bytes that differ from part to part.
fn entry(length: usize) -> Bytes {
    (0..length)
        .map(|index| (index / 1000) as u8 ^ (index >> 16) as u8)
        .collect::<Vec<u8>>()
        .into()
}

fn split_in_chunks(entry: &[u8], chunk: usize) -> Vec<Bytes> {
    let mut splitter = PartSplitter::default();
    let mut parts = Vec::new();
    for chunk in entry.chunks(chunk) {
        parts.extend(splitter.push(chunk));
    }
    parts.extend(splitter.finish());
    parts
}

fn check_parts(entry: &Bytes, parts: &[Bytes]) {
    assert!(parts.concat() == entry.as_ref(), "the parts are not the entry");
    assert_eq!(parts.len(), entry.len().div_ceil(PART_SIZE));
    for (number, part) in parts.iter().enumerate() {
        check_part_length(number as u32, number + 1 == parts.len(), part.len()).unwrap();
    }
}

#[test]
fn the_constants_of_the_protocol() {
    assert_eq!(PART_SIZE, 524_288);
    assert_eq!(MAX_PARTS, 2048);
    assert_eq!(u64::from(MAX_PARTS) * PART_SIZE as u64, MAX_ENTRY_BYTES);
    assert_eq!(wakelog_model::limits::REMEMBERED_ENTRIES, 256);
}

#[test]
fn an_empty_entry_has_no_parts() {
    assert_eq!(split_parts(&Bytes::new()).count(), 0);
    let mut splitter = PartSplitter::default();
    assert!(splitter.push(&[]).is_empty());
    assert_eq!(splitter.finish(), None);
}

#[test]
fn entries_are_split_at_the_edges() {
    for length in [
        1,
        PART_SIZE - 1,
        PART_SIZE,
        PART_SIZE + 1,
        2 * PART_SIZE,
        2 * PART_SIZE + 1,
    ] {
        let entry = entry(length);
        let parts: Vec<_> = split_parts(&entry).collect();
        check_parts(&entry, &parts);
        assert_eq!(split_parts(&entry).len(), parts.len());
        assert!(split_in_chunks(&entry, usize::MAX) == parts);
        assert!(split_in_chunks(&entry, PART_SIZE) == parts);
    }
}

#[test]
fn a_part_that_may_be_the_last_is_held_back() {
    let mut splitter = PartSplitter::default();
    assert!(splitter.push(&entry(PART_SIZE)).is_empty());
    assert_eq!(splitter.push(&[1]).len(), 1);
    assert_eq!(splitter.finish(), Some(Bytes::from_static(&[1])));
}

#[test]
fn part_lengths_are_checked() {
    for (last, length, good) in [
        (false, PART_SIZE, true),
        (false, PART_SIZE - 1, false),
        (false, PART_SIZE + 1, false),
        (false, 0, false),
        (true, 0, false),
        (true, 1, true),
        (true, PART_SIZE, true),
        (true, PART_SIZE + 1, false),
        (true, usize::MAX, false),
    ] {
        match check_part_length(7, last, length) {
            Ok(()) => assert!(good, "{last} {length}"),
            Err(Error::PartLength {
                part,
                actual,
                expected,
            }) => {
                assert!(!good, "{last} {length}");
                assert_eq!(
                    (part, actual, expected.contains("not the last")),
                    (7, length, !last)
                );
            }
            Err(other) => panic!("{other}"),
        }
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn byte_exact_any_chunks_give_the_same_parts(length in 0..3 * PART_SIZE, chunk in 1..2 * PART_SIZE) {
        let entry = entry(length);
        let parts: Vec<_> = split_parts(&entry).collect();
        check_parts(&entry, &parts);
        prop_assert!(split_in_chunks(&entry, chunk.max(1000)) == parts);
    }
}
