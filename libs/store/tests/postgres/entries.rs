use wakelog_store::{BatchWrites, PartRow, Store};

use crate::support::Database;
use crate::support::rows::{Owner, part, session, session_with_entries};

on_both_pools!(
    pages_of_mixed_sizes_hold_every_part_once_and_byte_for_byte,
    a_page_is_bounded_by_bytes_and_by_rows_and_is_never_empty_before_the_end,
    a_length_counts_plain_bytes_of_the_range,
);

/// Reads everything in pages, as a reconstructor would.
async fn read_all(store: &Store, last_entry_seq: u64, max_bytes: usize) -> (Vec<PartRow>, usize) {
    let (mut parts, mut pages, mut after) = (Vec::new(), 0, None);
    loop {
        let page = store
            .parts_page(session(1), after, last_entry_seq, max_bytes)
            .await
            .unwrap();
        let Some(last) = page.last() else {
            return (parts, pages);
        };
        after = Some((last.entry_seq, last.part));
        pages += 1;
        parts.extend(page);
    }
}

async fn pages_of_mixed_sizes_hold_every_part_once_and_byte_for_byte(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let every_byte: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let bodies: [&[u8]; 6] = [
        b"\0",
        b"\xff\xfe\xc3\x28 not UTF-8",
        &every_byte,
        b"{\"a\":1}\r\n",
        &[0; 9_000],
        b"\\x5c 'quoted' \\",
    ];
    let mut expected: Vec<PartRow> = Vec::new();
    for (entry_seq, body) in (1..).zip(bodies.iter().cycle().take(60)) {
        for number in 0..=(entry_seq % 3) as u32 {
            let last = u64::from(number) == entry_seq % 3;
            let checkpoint = entry_seq % 7 == 0;
            expected.push(PartRow {
                last,
                checkpoint,
                encoding: 2,
                ..part(session(1), entry_seq, number, body)
            });
        }
    }
    let mut writes = session_with_entries(session(1), &[]);
    writes.parts = expected.iter().rev().cloned().collect();
    writes.parts.push(part(session(2), 1, 0, b"of another session"));
    writes.parts.push(part(session(1), 61, 0, b"beyond the range"));
    owner.write(writes).await;

    for max_bytes in [0, 1, 10_000, 69_999, 150_000, usize::MAX] {
        let (parts, _) = read_all(&store, 60, max_bytes).await;
        assert!(
            parts == expected,
            "{max_bytes}: {} of {} parts",
            parts.len(),
            expected.len()
        );
    }
}

async fn a_page_is_bounded_by_bytes_and_by_rows_and_is_never_empty_before_the_end(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let mut writes = session_with_entries(session(1), &[]);
    writes.parts = (1..=9_000)
        .map(|entry_seq| part(session(1), entry_seq, 0, b"0123456789"))
        .collect();
    owner.write(writes).await;

    let lengths = async |max_bytes| {
        store
            .parts_page(session(1), None, 9_000, max_bytes)
            .await
            .unwrap()
            .len()
    };
    assert_eq!(lengths(0).await, 1);
    assert_eq!(lengths(9).await, 1);
    assert_eq!(lengths(20).await, 2);
    assert_eq!(lengths(29).await, 2);
    assert_eq!(lengths(usize::MAX).await, 4_096);
    let (parts, pages) = read_all(&store, 9_000, usize::MAX).await;
    assert_eq!((parts.len(), pages), (9_000, 3));
    assert!(
        store
            .parts_page(session(1), Some((9_000, 0)), 9_000, 1)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        store
            .parts_page(session(1), Some((u64::MAX, u32::MAX)), u64::MAX, 1)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        store
            .parts_page(session(2), None, u64::MAX, 1)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn a_length_counts_plain_bytes_of_the_range(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let compressed = PartRow {
        plain_length: 400_000,
        encoding: 2,
        ..part(session(1), 2, 0, b"short")
    };
    let parts = vec![
        part(session(1), 1, 0, b"one"),
        compressed,
        part(session(1), 3, 0, b"three"),
    ];
    owner
        .write(BatchWrites {
            parts,
            ..BatchWrites::default()
        })
        .await;
    assert_eq!(store.body_length(session(1), 1, 3).await.unwrap(), 400_008);
    assert_eq!(store.body_length(session(1), 2, 2).await.unwrap(), 400_000);
    assert_eq!(store.body_length(session(1), 4, u64::MAX).await.unwrap(), 0);
}
