use wakelog_model::limits::PART_SIZE;
use wakelog_model::{encode_part, part_digest};

use super::*;
use crate::testing::session;

fn part(number: u32) -> ArchivedPart {
    let plain = Bytes::from(vec![number as u8; PART_SIZE]);
    let (encoding, body) = encode_part(&plain);
    ArchivedPart {
        part: number,
        checkpoint: true,
        generation: 4,
        encoding: encoding as i32,
        plain_length: PART_SIZE as u32,
        part_digest: Bytes::copy_from_slice(part_digest(&plain).as_bytes()),
        body,
    }
}

fn object(parts: &[ArchivedPart]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        part.encode_length_delimited(&mut bytes).unwrap();
    }
    bytes
}

/// Reads an object that comes in pieces of `piece` bytes; the state knows of parts `0..expected`.
fn read(object: &[u8], piece: usize, expected: u32) -> Result<Vec<PartRow>, String> {
    let digests: Vec<Digest16> = (0..expected)
        .map(|number| part_digest(&vec![number as u8; PART_SIZE]))
        .collect();
    let mut reading = Reading {
        key: SnapshotKey {
            session: session(1),
            incarnation: 1,
            offset: 9,
        },
        entry_seq: 12,
        digests: &digests,
        due: 0,
        pending: BytesMut::new(),
    };
    let mut rows = Vec::new();
    for chunk in object.chunks(piece) {
        reading.pending.extend_from_slice(chunk);
        while let Some(row) = reading.next_part()? {
            rows.push(row);
        }
    }
    reading.finish().map(|()| rows)
}

#[test]
fn exactly_once_fold_unfinished_parts_come_back_however_they_are_cut() {
    let object = object(&[part(0), part(1), part(2)]);
    for piece in [1, 7, 100, object.len()] {
        let rows = read(&object, piece, 3).unwrap();
        let numbers: Vec<(u64, u32, bool)> = rows
            .iter()
            .map(|row| (row.entry_seq, row.part, row.last))
            .collect();
        assert_eq!(numbers, [(12, 0, false), (12, 1, false), (12, 2, false)]);
        assert_eq!(rows[2].body, part(2).body);
    }
}

#[test]
fn no_silent_gap_parts_that_are_cut_short_or_damaged_are_refused() {
    let whole = object(&[part(0), part(1)]);
    assert!(read(&whole, 64, 3).is_err(), "one is missing");
    assert!(read(&whole[..whole.len() - 1], 64, 2).is_err(), "cut short");
    assert!(read(&object(&[part(1)]), 64, 1).is_err(), "the first is missing");
    let mut other_bytes = part(0);
    other_bytes.body = part(1).body;
    assert!(read(&object(&[other_bytes]), 64, 1).is_err(), "other bytes");
    let renumbered = ArchivedPart { part: 0, ..part(1) };
    assert!(
        read(&object(&[renumbered]), 64, 1).is_err(),
        "a part of another entry"
    );
    assert!(read(&[0xff; 40], 64, 1).is_err(), "no length");
}
