use super::*;

fn record(key: &'static [u8], value: &'static [u8]) -> Record {
    Record::new(3, 7, Bytes::from_static(key), Bytes::from_static(value), None)
}

#[test]
fn the_crc_tells_where_the_key_ends() {
    assert_eq!(record(b"ab", b"c").crc(), record(b"ab", b"c").crc());
    assert_ne!(record(b"ab", b"c").crc(), record(b"a", b"bc").crc());
    assert_ne!(record(b"ab", b"c").crc(), record(b"ab", b"d").crc());
}

/// It is kept in databases, so it can't change.
#[test]
fn the_crc_is_what_it_always_was() {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[0, 0, 0, 0, 0, 0, 0, 2, b'a', b'b', 0, 0, 0, 0, 0, 0, 0, 1, b'c']);
    assert_eq!(record(b"ab", b"c").crc(), hasher.finalize());
}

#[test]
fn a_payload_is_never_printed() {
    let text = format!("{:?}", record(b"key", b"secret"));
    assert!(
        text.contains("value_bytes: 6") && !text.contains("secret"),
        "{text}"
    );
}

#[test]
fn a_budget_is_given_back_when_records_are_dropped() {
    let budget = Budget::new(1000);
    let share = budget.share();
    let first = share.try_charge(600).unwrap();
    assert!(share.try_charge(600).is_none());
    assert!(!share.has_room());
    drop(first);
    assert!(share.has_room());
    assert!(share.try_charge(600).is_some());
}

#[test]
fn a_partition_may_always_have_one_record() {
    let budget = Budget::new(1000);
    let greedy = budget.share();
    let _all = greedy.try_charge(1000).unwrap();
    let modest = budget.share();
    let one = modest.try_charge(10).unwrap();
    assert!(modest.try_charge(10).is_none());
    drop(one);
    assert!(modest.try_charge(10).is_some());
}

#[test]
fn a_record_larger_than_the_budget_passes() {
    let share = Budget::new(100).share();
    assert!(share.try_charge(5000).is_some());
}
