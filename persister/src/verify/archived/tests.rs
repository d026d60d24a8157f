use wakelog_model::part_digest;

use super::*;

fn part(bytes: &[u8], last: bool) -> ExpectedPart {
    ExpectedPart {
        checkpoint: false,
        last,
        generation: 3,
        plain_length: bytes.len() as u32,
        part_digest: Some(part_digest(bytes)),
    }
}

#[test]
fn complete_entries_of_the_range_are_taken_and_nothing_else() {
    let mut missing = MissingParts::from([
        ((1, 0), part(b"one", true)),
        ((2, 0), part(b"two", false)),
        ((2, 1), part(b"more", true)),
        ((3, 0), part(b"three", true)),
        ((4, 0), part(b"unfinished", false)),
    ]);
    let taken = take_entries(&mut missing, 2..=4);
    assert_eq!(taken.keys().copied().collect::<Vec<_>>(), [2, 3]);
    assert_eq!(taken[&2].len(), 2);
    assert_eq!(missing.keys().copied().collect::<Vec<_>>(), [(1, 0), (4, 0)]);
}

#[test]
fn an_entry_is_described_as_an_index_describes_it() {
    let digest = entry_digest(&[part_digest(b"two"), part_digest(b"more")]).unwrap();
    assert_eq!(
        describe(&[part(b"two", false), part(b"more", true)]),
        describe_entry(digest, 7, false, 3)
    );
    let undigested = ExpectedPart {
        part_digest: None,
        ..part(b"x", true)
    };
    assert_eq!(describe(&[undigested]), "no digest");
}

#[test]
fn a_copy_excuses_nothing() {
    assert!(is_pruning(SegmentKind::Superseded) && is_pruning(SegmentKind::SafetyValve));
    assert!(!is_pruning(SegmentKind::SessionEnd) && !is_pruning(SegmentKind::Retention));
}
