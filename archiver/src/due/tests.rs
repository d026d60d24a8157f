use wakelog_model::SessionId;

use super::*;

fn tail(change: impl FnOnce(&mut HotTail)) -> HotTail {
    let mut tail = HotTail {
        session: SessionId::for_request("ann", "one"),
        partition: 0,
        erased: false,
        last_entry_seq: 9,
        last_checkpoint_seq: 4,
        superseded_rows: false,
        delta_bytes: 100,
    };
    change(&mut tail);
    tail
}

#[test]
fn what_a_checkpoint_superseded_goes_first() {
    let both = tail(|tail| {
        tail.superseded_rows = true;
        tail.delta_bytes = 101;
    });
    assert_eq!(due(&both, 100), Some(Due::Superseded { last: 3 }));
}

#[test]
fn the_valve_opens_above_the_cap_and_closes_at_half_of_it() {
    assert_eq!(due(&tail(|_| {}), 100), None);
    let over = tail(|tail| tail.delta_bytes = 101);
    assert_eq!(due(&over, 100), Some(Due::Valve { keep_bytes: 50 }));
}

#[test]
fn nothing_of_an_erased_session_is_archived() {
    let erased = tail(|tail| {
        tail.erased = true;
        tail.superseded_rows = true;
        tail.delta_bytes = 1_000;
    });
    assert_eq!(due(&erased, 100), None);
}
