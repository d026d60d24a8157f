use super::*;

#[test]
fn a_key_keeps_so_many_records_and_no_more() {
    let mut kept = Kept::default();
    for record in 0..KEPT_RECORDS {
        assert!(kept.admit(1), "{record}");
    }
    assert!(!kept.admit(1));
    assert_eq!(
        kept,
        Kept {
            records: KEPT_RECORDS,
            bytes: KEPT_RECORDS
        }
    );
}

#[test]
fn a_key_keeps_so_many_bytes_and_a_smaller_record_may_still_fit() {
    let mut kept = Kept::default();
    assert!(kept.admit(KEPT_BYTES - 10));
    assert!(!kept.admit(11));
    assert!(kept.admit(10));
    assert!(!kept.admit(1));
    assert!(!Kept::default().admit(KEPT_BYTES + 1));
    assert!(!Kept::default().admit(u64::MAX));
}

#[test]
fn a_long_key_is_stored_as_its_hash() {
    let longest = vec![b'k'; MAX_KEY_BYTES];
    assert_eq!(stored_key(&longest), longest);
    let hashed = stored_key(&[longest.as_slice(), b"k"].concat());
    assert!(hashed.starts_with(HASHED_KEY_PREFIX));
    assert_eq!(hashed.len(), HASHED_KEY_PREFIX.len() + 32);
    assert_eq!(stored_key(b""), b"");
}

#[test]
fn a_detail_is_text_that_the_database_takes() {
    assert_eq!(stored_detail("a\0b"), "a\u{fffd}b");
    assert_eq!(
        stored_detail(&"é".repeat(MAX_DETAIL_CHARS + 1)).chars().count(),
        MAX_DETAIL_CHARS
    );
}
