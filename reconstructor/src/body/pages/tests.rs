use std::sync::atomic::Ordering;

use wakelog_model::limits::PART_SIZE;

use super::*;
use crate::body::PartReader;
use crate::fixtures::{Pages, entry, session};
use crate::sequence::Rule;

const LAST: u64 = 20;

/// A checkpoint of several parts and deltas, one of them of several parts.
fn entries() -> (Pages, Vec<u8>) {
    let mut body = Vec::new();
    let mut entries = Vec::new();
    for at in 1..=LAST {
        let bytes = match at {
            1 => vec![b'c'; 2 * PART_SIZE + 7],
            9 => vec![b'd'; PART_SIZE + 1],
            _ => format!("{{\"n\":{at}}}\n").into_bytes(),
        };
        body.extend_from_slice(&bytes);
        entries.push(entry(at, at == 1, bytes));
    }
    (Pages::of(entries), body)
}

async fn read(pages: &Pages, page_bytes: usize) -> Result<Vec<u8>, Error> {
    let range = Range {
        session: session(),
        first: 1,
        last: LAST,
    };
    let mut reader = PartReader::new(pages.clone(), range, Rule::Body, page_bytes);
    let mut body = Vec::new();
    while let Some(part) = reader.next().await? {
        body.extend_from_slice(&part.plain);
    }
    Ok(body)
}

#[tokio::test]
async fn byte_exact_wherever_the_archive_holds_a_part_of_the_body() {
    let holes: [&[(u64, u64)]; 8] = [
        &[(1, 1)],
        &[(1, LAST)],
        &[(2, 5)],
        &[(9, 9)],
        &[(LAST, LAST)],
        &[(2, 4), (5, 5), (6, 12)],
        &[(2, 3), (6, 7), (15, LAST)],
        &[(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6)],
    ];
    for holes in holes {
        for page_bytes in [1, 30, PART_SIZE, 4 * PART_SIZE] {
            let (pages, body) = entries();
            for (first, last) in holes {
                pages.flush(*first, *last);
            }
            let read = read(&pages, page_bytes).await;
            assert!(read.unwrap() == body, "{holes:?} {page_bytes}");
        }
    }
}

#[tokio::test]
async fn a_body_without_a_hole_never_asks_for_segments() {
    let (pages, body) = entries();
    pages.copy(1, 10);
    assert!(read(&pages, 30).await.unwrap() == body);
    assert_eq!(pages.asked_manifest.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn byte_exact_while_rows_move_to_the_archive() {
    for page_bytes in [1, 30, PART_SIZE] {
        for step in 1..=LAST {
            let (pages, body) = entries();
            // The archiver runs ahead of the reader, beside it, and behind it.
            *pages.flush_next.lock().unwrap() = (1..=LAST)
                .step_by(step as usize)
                .map(|first| (first, (first + step - 1).min(LAST)))
                .collect();
            assert!(
                read(&pages, page_bytes).await.unwrap() == body,
                "{page_bytes} {step}"
            );
        }
    }
}

#[tokio::test]
async fn byte_exact_when_an_entry_moves_between_two_of_its_parts() {
    let (pages, body) = entries();
    // Each page is one part: the second flush comes after the first part of entry 9.
    *pages.flush_next.lock().unwrap() = [(30, 30); 11].into();
    pages.flush_next.lock().unwrap().push_back((9, 9));
    assert!(read(&pages, 1).await.unwrap() == body);
    assert_eq!(pages.segments.lock().unwrap().len(), 12);
}

#[tokio::test]
async fn a_segment_that_can_not_be_read_is_passed_over_if_another_one_holds_the_same() {
    let (pages, body) = entries();
    let copy = pages.copy(2, 12);
    pages.flush(2, 6);
    pages.flush(7, 12);
    pages.unreadable.lock().unwrap().insert(copy);
    assert!(read(&pages, 30).await.unwrap() == body);
}

#[tokio::test]
async fn resume_is_current_or_an_error_when_a_segment_can_not_be_read() {
    let (pages, _) = entries();
    let only = pages.flush(4, 8);
    pages.unreadable.lock().unwrap().insert(only);
    assert!(matches!(read(&pages, 30).await, Err(Error::Failpoint("segment"))));
}

#[tokio::test]
async fn archived_is_complete_or_an_error_that_names_what_is_missing() {
    for (missing, last) in [(1, 1), (4, 8), (LAST, LAST)] {
        let (pages, _) = entries();
        pages.flush(missing, last);
        pages.segments.lock().unwrap().clear();
        let Err(Error::Corrupt(what)) = read(&pages, 30).await else {
            panic!("{missing}");
        };
        assert!(what.contains(&format!("entry {missing} part 0")), "{what}");
    }
}

#[test]
fn a_position_follows_the_one_before_it() {
    assert_eq!(position_before((1, 0)), None);
    assert_eq!(position_before((0, 0)), None);
    assert_eq!(position_before((2, 0)), Some((1, MAX_PARTS)));
    assert_eq!(position_before((2, 3)), Some((2, 2)));
    assert_eq!(position_after((2, 3), false), (2, 4));
    assert_eq!(position_after((2, 3), true), (3, 0));
}
