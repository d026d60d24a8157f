use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

async fn parts_of(entry: &mut HeldEntry) -> Result<Vec<TranscriptPart>, Error> {
    let mut outgoing = entry.start()?;
    let mut parts = Vec::new();
    loop {
        let part = entry.next_part(&mut outgoing).await?;
        let last = part.last;
        parts.push(part);
        if last {
            return Ok(parts);
        }
    }
}

fn reopened(bytes: Vec<u8>) -> Source {
    Source::Reopened(Box::new(move || Ok(Box::new(io::Cursor::new(bytes.clone())))))
}

#[tokio::test]
async fn a_read_source_and_kept_bytes_give_the_same_parts() {
    for length in [
        1,
        PART_SIZE - 1,
        PART_SIZE,
        PART_SIZE + 1,
        2 * PART_SIZE,
        2 * PART_SIZE + 7,
    ] {
        let bytes: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
        let kept = parts_of(&mut HeldEntry::new(1, true, Source::Kept(bytes.clone().into())))
            .await
            .unwrap();
        let read = parts_of(&mut HeldEntry::new(1, true, reopened(bytes.clone())))
            .await
            .unwrap();
        assert_eq!(kept, read, "length {length}");
        assert_eq!(kept.iter().filter(|part| part.last).count(), 1);
        assert!(
            kept.iter()
                .rev()
                .skip(1)
                .all(|part| part.content.len() == PART_SIZE)
        );
        assert_eq!(
            kept.iter()
                .flat_map(|part| part.content.to_vec())
                .collect::<Vec<_>>(),
            bytes
        );
    }
}

#[tokio::test]
async fn an_empty_source_is_refused() {
    let result = parts_of(&mut HeldEntry::new(1, true, reopened(Vec::new()))).await;
    assert!(matches!(result, Err(Error::EmptyEntry)));
}

#[tokio::test]
async fn a_source_that_changed_is_refused() {
    let opened = Arc::new(AtomicUsize::new(0));
    let source = Source::Reopened(Box::new(move || {
        let bytes = if opened.fetch_add(1, Ordering::Relaxed) == 0 {
            b"first".as_slice()
        } else {
            b"other"
        };
        Ok(Box::new(bytes))
    }));
    let mut entry = HeldEntry::new(4, true, source);
    parts_of(&mut entry).await.unwrap();
    assert!(matches!(
        parts_of(&mut entry).await,
        Err(Error::SourceChanged { entry_seq: 4 })
    ));
}
