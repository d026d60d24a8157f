use super::*;

fn part(entry_seq: u64, part: u32, last: bool) -> TailSessionResponse {
    TailSessionResponse {
        entry_seq,
        part,
        last,
        ..TailSessionResponse::default()
    }
}

#[test]
fn each_part_is_taken_once_and_in_order() {
    let mut position = Position {
        entry_seq: 0,
        part: 0,
    };
    assert!(position.moves_to(&part(7, 0, false)).unwrap());
    assert!(position.moves_to(&part(7, 1, true)).unwrap());
    // The same entry again, after a broken connection.
    assert!(!position.moves_to(&part(7, 0, false)).unwrap());
    assert!(!position.moves_to(&part(7, 1, true)).unwrap());
    assert!(position.moves_to(&part(8, 0, true)).unwrap());
}

#[test]
fn no_silent_gap_between_parts_and_entries() {
    for (due, came) in [
        ((3, 0), part(4, 0, true)),
        ((3, 0), part(3, 1, true)),
        ((3, 1), part(4, 0, true)),
    ] {
        let mut position = Position {
            entry_seq: due.0,
            part: due.1,
        };
        assert!(position.moves_to(&came).is_err(), "{due:?}");
    }
}
