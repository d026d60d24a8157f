use super::*;

#[test]
fn the_largest_bigint_fits_and_the_next_number_is_a_typed_error() {
    assert_eq!(to_bigint("seq", i64::MAX as u64).unwrap(), i64::MAX);
    assert_eq!(from_bigint("seq", i64::MAX).unwrap(), i64::MAX as u64);
    for value in [i64::MAX as u64 + 1, u64::MAX] {
        assert!(
            matches!(to_bigint("seq", value), Err(Error::OutOfRange { what: "seq", value: v }) if v == value)
        );
    }
}

#[test]
fn the_largest_integer_fits_and_the_next_number_is_a_typed_error() {
    assert_eq!(to_integer("part", i32::MAX as u32).unwrap(), i32::MAX);
    assert!(matches!(
        to_integer("part", i32::MAX as u32 + 1),
        Err(Error::OutOfRange { what: "part", .. })
    ));
}

#[test]
fn a_negative_number_in_the_database_is_a_bug_and_not_a_huge_number() {
    assert!(matches!(from_bigint("seq", -1), Err(Error::Bug(_))));
    assert!(matches!(from_integer("part", -1), Err(Error::Bug(_))));
}

#[test]
fn a_bound_saturates() {
    assert_eq!(clamp_bigint(u64::MAX), i64::MAX);
    assert_eq!(clamp_bigint(7), 7);
}
