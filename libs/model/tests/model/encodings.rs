//! What is stored comes back as it was, or as a typed error: never as other bytes.

use bytes::Bytes;
use proptest::prelude::*;
use wakelog_model::limits::PART_SIZE;
use wakelog_model::{Encoding, Error, decode_part, encode_part, part_digest};

use crate::config;

/// Bytes that zstd makes smaller, and bytes that it does not.
fn plain() -> impl Strategy<Value = Bytes> {
    let noise = prop::collection::vec(any::<u8>(), 1..2000);
    let text = prop::collection::vec(prop::sample::select(b"{}\":, \n\0abc".to_vec()), 1..4000);
    let repeats = (any::<u8>(), 1_usize..5000).prop_map(|(byte, length)| vec![byte; length]);
    prop_oneof![noise, text, repeats].prop_map(Bytes::from)
}

#[test]
fn encodings_have_the_numbers_of_the_wire() {
    assert_eq!((Encoding::Plain as i32, Encoding::Zstd as i32), (1, 2));
    assert_eq!(Encoding::try_from(1), Ok(Encoding::Plain));
    assert_eq!(Encoding::try_from(2), Ok(Encoding::Zstd));
    for code in [i32::MIN, -1, 0, 3, i32::MAX] {
        assert_eq!(Encoding::try_from(code), Err(Error::UnknownEncoding { code }));
        let body = Bytes::from_static(b"a");
        assert_eq!(
            decode_part(code, &body, 1, part_digest(b"a")),
            Err(Error::UnknownEncoding { code })
        );
    }
}

#[test]
fn a_part_is_compressed_where_that_pays() {
    let of = |plain: Vec<u8>| encode_part(&plain.into());
    assert_eq!(of(vec![b'a'; 255]).0, Encoding::Plain);
    let (encoding, body) = of(vec![b'a'; 256]);
    assert_eq!(encoding, Encoding::Zstd);
    assert!(body.len() < 256);
    // Every byte once, in an order without repeats: zstd only adds its header.
    let noise: Vec<u8> = (0..=255_u8).map(|byte| byte.wrapping_mul(167) ^ 0x5a).collect();
    let (encoding, body) = of(noise.clone());
    assert_eq!((encoding, body.as_ref()), (Encoding::Plain, noise.as_slice()));
}

#[test]
fn a_whole_part_round_trips() {
    let plain = Bytes::from(b"a line of a session file\r\n\0".repeat(20_000)).slice(..PART_SIZE);
    let (encoding, body) = encode_part(&plain);
    assert_eq!(encoding, Encoding::Zstd);
    assert_eq!(
        decode_part(encoding as i32, &body, PART_SIZE, part_digest(&plain)),
        Ok(plain)
    );
}

#[test]
fn a_body_cannot_decode_to_more_than_a_part() {
    let bomb: Bytes = zstd::bulk::compress(&vec![0; PART_SIZE + 1], 3).unwrap().into();
    let digest = part_digest(&vec![0; PART_SIZE + 1]);
    let decoded = decode_part(2, &bomb, PART_SIZE + 1, digest);
    assert!(matches!(decoded, Err(Error::Undecodable { .. })), "{decoded:?}");
}

#[test]
fn another_length_or_digest_is_an_error() {
    let plain = Bytes::from(vec![b'a'; 300]);
    let digest = part_digest(&plain);
    let (encoding, zstd) = encode_part(&plain);
    for (encoding, body) in [(Encoding::Plain, plain), (encoding, zstd)] {
        let longer = decode_part(encoding as i32, &body, 301, digest);
        assert_eq!(
            longer,
            Err(Error::LengthMismatch {
                expected: 301,
                actual: 300
            })
        );
        assert!(decode_part(encoding as i32, &body, 299, digest).is_err());
        let expected = part_digest(b"other");
        let other = decode_part(encoding as i32, &body, 300, expected);
        assert_eq!(
            other,
            Err(Error::DigestMismatch {
                expected,
                actual: digest
            })
        );
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn byte_exact_parts_round_trip(plain in plain()) {
        let (encoding, body) = encode_part(&plain);
        prop_assert!(body.len() <= plain.len());
        prop_assert_eq!(decode_part(encoding as i32, &body, plain.len(), part_digest(&plain)), Ok(plain));
    }

    /// A flipped bit is an error, or (in a bit of a zstd frame that means nothing) still the same bytes.
    #[test]
    fn byte_exact_a_flipped_bit_is_never_other_bytes(
        plain in plain(),
        index in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let (encoding, body) = encode_part(&plain);
        let mut flipped = body.to_vec();
        let index = index.index(flipped.len());
        flipped[index] ^= 1 << bit;
        match decode_part(encoding as i32, &flipped.into(), plain.len(), part_digest(&plain)) {
            Ok(decoded) => {
                prop_assert_eq!(encoding, Encoding::Zstd);
                prop_assert_eq!(decoded, plain);
            }
            Err(Error::Undecodable { .. } | Error::LengthMismatch { .. } | Error::DigestMismatch { .. }) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn any_bytes_decode_or_are_an_error(body: Vec<u8>, encoding in 0_i32..4, length in 0_usize..100) {
        let digest = part_digest(b"");
        if let Ok(plain) = decode_part(encoding, &body.into(), length, digest) {
            prop_assert!(plain.is_empty());
        }
    }
}
