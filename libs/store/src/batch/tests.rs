use super::*;

#[test]
fn columns_of_different_lengths_are_never_sent() {
    assert_equal_lengths("t", &[]).unwrap();
    assert_equal_lengths("t", &[3, 3, 3]).unwrap();
    for lengths in [[2, 3, 3], [3, 2, 3], [3, 3, 2]] {
        assert!(
            matches!(assert_equal_lengths("t", &lengths), Err(Error::Bug(_))),
            "{lengths:?}"
        );
    }
}

#[test]
fn a_row_that_was_not_written_is_a_bug() {
    assert_all_written("t", 2, 2).unwrap();
    assert!(matches!(assert_all_written("t", 2, 1), Err(Error::Bug(_))));
}
