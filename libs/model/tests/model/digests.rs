//! The digests as DESIGN 2 defines them, over plain SHA-256.

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use wakelog_model::{Digest16, EntryDigester, entry_digest, part_digest, remembered_hash};

use crate::config;

fn first_16_of_sha256(bytes: &[u8]) -> Digest16 {
    Digest16::from_slice(&Sha256::digest(bytes)[..16]).unwrap()
}

#[test]
fn a_part_digest_is_16_bytes_of_sha256() {
    // SHA-256 of "abc" begins with these (FIPS 180-2, appendix B.1).
    assert_eq!(
        part_digest(b"abc").to_string(),
        "ba7816bf8f01cfea414140de5dae2223"
    );
    assert_eq!(
        format!("{:?}", part_digest(b"abc")),
        "Digest16(ba7816bf8f01cfea414140de5dae2223)"
    );
    assert_eq!(part_digest(b""), first_16_of_sha256(b""));
}

#[test]
fn a_digest_has_16_bytes() {
    for length in [0, 15, 17, 32] {
        assert_eq!(Digest16::from_slice(&vec![1; length]), None);
    }
    assert_eq!(Digest16::from_slice(&[1; 16]).unwrap().as_bytes(), [1; 16]);
}

#[test]
fn an_entry_of_one_part_has_the_digest_of_the_part() {
    assert_eq!(entry_digest(&[]), None);
    let only = part_digest(b"only");
    assert_eq!(entry_digest(&[only]), Some(only));
}

#[test]
fn a_remembered_hash_is_over_flag_count_and_digest() {
    let digest = part_digest(b"entry");
    let mut input = vec![1, 0, 0, 1, 2];
    input.extend_from_slice(digest.as_bytes());
    let hash = remembered_hash(true, 258, digest);
    assert_eq!(hash, first_16_of_sha256(&input));
    assert_ne!(hash, remembered_hash(false, 258, digest));
    assert_ne!(hash, remembered_hash(true, 259, digest));
    assert_ne!(hash, remembered_hash(true, 258, part_digest(b"other")));
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn an_entry_of_more_parts_has_the_digest_of_their_digests(parts: Vec<[u8; 16]>) {
        let digests: Vec<_> = parts.iter().copied().map(Digest16).collect();
        let expected = match parts.as_slice() {
            [] => None,
            [only] => Some(Digest16(*only)),
            many => Some(first_16_of_sha256(&many.concat())),
        };
        prop_assert_eq!(entry_digest(&digests), expected);
        let mut digester = EntryDigester::default();
        for (taken, digest) in digests.iter().enumerate() {
            prop_assert_eq!(digester.part_count() as usize, taken);
            prop_assert_eq!(digester.finish(), entry_digest(&digests[..taken]));
            digester.push(*digest);
        }
        prop_assert_eq!(digester.finish(), expected);
    }
}
