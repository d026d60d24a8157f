use std::sync::atomic::Ordering;

use wakelog_model::limits::PART_SIZE;
use wakelog_model::{Digest16, part_digest};
use wakelog_store::PartRow;

use super::*;
use crate::fixtures::{Pages, entry, session};

/// Bytes that zstd makes nothing of.
fn noise(length: usize, mut seed: u64) -> Vec<u8> {
    (0..length)
        .map(|_| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 56) as u8
        })
        .collect()
}

async fn read(pages: &Pages, first: u64, last: u64, page_bytes: usize) -> Result<Vec<u8>, Error> {
    let range = Range {
        session: session(),
        first,
        last,
    };
    let mut reader = PartReader::new(pages.clone(), range, Rule::Body, page_bytes);
    let mut body = Vec::new();
    while let Some(part) = reader.next().await? {
        body.extend_from_slice(&part.plain);
    }
    assert!(reader.next().await?.is_none());
    Ok(body)
}

fn checkpoint_and_deltas() -> (Pages, Vec<u8>) {
    let big = noise(2 * PART_SIZE + 17, 1);
    let mut body = big.clone();
    let mut entries = vec![
        entry(1, false, &b"before the checkpoint\n"[..]),
        entry(2, true, big),
    ];
    for at in 3_u64..40 {
        let delta = format!("{{\"n\":{at}}}\n").into_bytes();
        body.extend_from_slice(&delta);
        entries.push(entry(at, false, delta));
    }
    entries.push(entry(40, false, &b"after the body\n"[..]));
    (Pages::of(entries), body)
}

#[tokio::test]
async fn a_body_is_byte_exact_whatever_the_page_size() {
    let (pages, body) = checkpoint_and_deltas();
    for page_bytes in [1, 10, 1_000, PART_SIZE, 4 * PART_SIZE] {
        assert_eq!(
            read(&pages, 2, 39, page_bytes).await.unwrap(),
            body,
            "{page_bytes}"
        );
    }
}

#[tokio::test]
async fn nothing_but_the_range_is_read() {
    let (pages, _) = checkpoint_and_deltas();
    assert_eq!(
        read(&pages, 1, 1, 1_000).await.unwrap(),
        b"before the checkpoint\n"
    );
}

#[tokio::test]
async fn bytes_of_any_kind_come_back() {
    for bytes in [
        &b"\0"[..],
        b"\xff\xfe\n\r\n",
        b"no newline",
        " ".repeat(4_000).as_bytes(),
    ] {
        let pages = Pages::of([entry(1, false, bytes.to_vec())]);
        assert_eq!(read(&pages, 1, 1, 1).await.unwrap(), bytes);
    }
}

#[tokio::test]
async fn every_missing_part_is_an_error_and_never_a_shorter_body() {
    let (pages, _) = checkpoint_and_deltas();
    let whole = pages.rows.lock().unwrap().clone();
    for at in 1..whole.len() - 1 {
        let mut rows = whole.clone();
        rows.remove(at);
        *pages.rows.lock().unwrap() = rows;
        for page_bytes in [1, 4 * PART_SIZE] {
            let error = read(&pages, 2, 39, page_bytes).await.unwrap_err();
            assert!(matches!(error, Error::Corrupt(_)), "{at}: {error}");
        }
    }
}

#[tokio::test]
async fn a_body_of_which_nothing_is_there_is_an_error() {
    let pages = Pages::default();
    let Err(Error::Corrupt(message)) = read(&pages, 3, 3, 1).await else {
        panic!()
    };
    assert!(message.contains("entry 3 part 0 is missing"), "{message}");
}

#[tokio::test]
async fn a_flipped_bit_is_an_error() {
    for length in [20, 4_000, PART_SIZE + 9] {
        let pages = Pages::of([
            entry(1, true, noise(length, 7)),
            entry(2, false, vec![b'x'; length]),
        ]);
        let rows = pages.rows.lock().unwrap().clone();
        for at in 0..rows.len() {
            let mut broken = rows.clone();
            let mut body = broken[at].body.to_vec();
            let middle = body.len() / 2;
            body[middle] ^= 1;
            broken[at].body = body.into();
            *pages.rows.lock().unwrap() = broken;
            assert!(
                matches!(read(&pages, 1, 2, 100).await, Err(Error::Corrupt(_))),
                "{length} {at}"
            );
        }
    }
}

#[tokio::test]
async fn a_part_that_is_not_what_its_row_says_is_an_error() {
    let good = entry(1, false, &b"one line\n"[..]);
    let cases: [fn(&mut PartRow); 5] = [
        |row| row.encoding = 9,
        |row| row.plain_length += 1,
        |row| row.part_digest = Digest16([0; 16]),
        |row| {
            row.body = Bytes::from_static(b"two line\n");
        },
        |row| row.last = false,
    ];
    for (at, change) in cases.into_iter().enumerate() {
        let mut rows = good.clone();
        change(&mut rows[0]);
        assert!(
            matches!(read(&Pages::of([rows]), 1, 1, 1).await, Err(Error::Corrupt(_))),
            "{at}"
        );
    }
    assert_eq!(good[0].part_digest, part_digest(b"one line\n"));
}

#[tokio::test]
async fn a_page_that_fails_ends_the_body_with_its_error() {
    let (mut pages, _) = checkpoint_and_deltas();
    for failing in 0..5 {
        pages.fail_from = Some(failing);
        pages.asked.store(0, Ordering::SeqCst);
        assert!(
            matches!(read(&pages, 2, 39, 10).await, Err(Error::Failpoint("pages"))),
            "{failing}"
        );
    }
}

#[tokio::test]
async fn no_more_than_a_few_pages_are_read_ahead() {
    let pages = Pages::of((1..=50).map(|at| entry(at, false, &b"line\n"[..])));
    let range = Range {
        session: session(),
        first: 1,
        last: 50,
    };
    let mut reader = PartReader::new(pages.clone(), range, Rule::Body, 1);
    for taken in 1..=10 {
        reader.next().await.unwrap().unwrap();
        // Whoever reads ahead is given every chance to read too far.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let most = taken + PAGES_AHEAD + 1;
        let asked = pages.asked.load(Ordering::SeqCst);
        assert!((taken..=most).contains(&asked), "{asked} after {taken} pages");
    }
}

#[tokio::test]
async fn nobody_reads_on_for_a_reader_that_has_gone() {
    let pages = Pages::of((1..=50).map(|at| entry(at, false, &b"line\n"[..])));
    let range = Range {
        session: session(),
        first: 1,
        last: 50,
    };
    let mut reader = PartReader::new(pages.clone(), range, Rule::Body, 1);
    reader.next().await.unwrap().unwrap();
    drop(reader);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(pages.asked.load(Ordering::SeqCst) <= 2 + PAGES_AHEAD);
}

#[tokio::test]
async fn the_last_page_is_not_followed_by_another_query() {
    let pages = Pages::of((1..=3).map(|at| entry(at, false, &b"line\n"[..])));
    read(&pages, 1, 3, 1_000).await.unwrap();
    assert_eq!(pages.asked.load(Ordering::SeqCst), 1);
}
