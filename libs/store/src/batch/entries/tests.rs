use bytes::Bytes;
use wakelog_model::Digest16;

use super::*;

fn part(length: usize) -> PartRow {
    PartRow {
        session: SessionId(Uuid::nil()),
        entry_seq: 1,
        part: 0,
        last: true,
        checkpoint: false,
        generation: 1,
        encoding: 1,
        plain_length: 1,
        part_digest: Digest16([0; 16]),
        body: Bytes::from(vec![0; length]),
    }
}

fn cut(lengths: &[usize]) -> Vec<usize> {
    let parts: Vec<PartRow> = lengths.iter().map(|length| part(*length)).collect();
    let parts: Vec<&PartRow> = parts.iter().collect();
    let mut rest = parts.as_slice();
    let mut inserts = Vec::new();
    while !rest.is_empty() {
        let rows = rows_of_one_insert(rest);
        inserts.push(rows);
        rest = &rest[rows..];
    }
    inserts
}

#[test]
fn an_insert_is_bounded_by_bytes_and_takes_at_least_one_row() {
    let half = INSERT_BYTES / 2;
    assert_eq!(cut(&[half, half, 1]), [2, 1]);
    assert_eq!(cut(&[INSERT_BYTES + 1, 1]), [1, 1]);
    assert_eq!(cut(&[INSERT_BYTES + 1]), [1]);
    assert_eq!(cut(&[1, INSERT_BYTES, 1]), [1, 1, 1]);
}

#[test]
fn an_insert_is_bounded_by_rows() {
    assert_eq!(cut(&[1; INSERT_ROWS]), [INSERT_ROWS]);
    assert_eq!(cut(&[1; INSERT_ROWS + 1]), [INSERT_ROWS, 1]);
}

#[test]
fn an_encoding_that_is_no_smallint_is_refused() {
    assert_eq!(encoding(2).unwrap(), 2);
    assert!(matches!(encoding(i32::from(i16::MAX) + 1), Err(Error::Bug(_))));
}
