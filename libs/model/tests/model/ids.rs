//! Ids: one written form each, and derived ids that are the same for ever.

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;
use wakelog_model::{Error, IdempotencyKey, LifetimeId, SessionId, WriterNonce};

use crate::config;

const TEXT: &str = "0188c0f2-7a3b-7000-8000-00000000abcd";

#[test]
fn a_session_id_has_one_written_form() {
    let id: SessionId = TEXT.parse().unwrap();
    assert_eq!(id.to_string(), TEXT);
    assert_eq!(format!("{id:?}"), format!("SessionId({TEXT})"));
    let others = [
        TEXT.to_uppercase(),
        TEXT.replace('-', ""),
        format!("{{{TEXT}}}"),
        format!("urn:uuid:{TEXT}"),
        format!("{TEXT} "),
        TEXT[..35].to_owned(),
        String::new(),
        "é".repeat(200),
    ];
    for other in others {
        assert!(
            matches!(other.parse::<SessionId>(), Err(Error::SessionId { .. })),
            "{other}"
        );
    }
}

#[test]
fn an_error_quotes_no_more_than_the_start_of_a_text() {
    let Err(Error::SessionId { value }) = "é".repeat(1000).parse::<SessionId>() else {
        panic!("it is not a session id");
    };
    assert_eq!(value.chars().count(), 80);
    let Err(Error::IdempotencyKey { value }) = "é".repeat(1000).parse::<IdempotencyKey>() else {
        panic!("it is not an idempotency key");
    };
    assert_eq!(value.chars().count(), 80);
}

#[test]
fn ids_of_16_bytes_take_16_bytes_only() {
    for length in [0, 15, 17] {
        let bytes = vec![1; length];
        let of = |what| Error::Length {
            what,
            expected: 16,
            actual: length,
        };
        assert_eq!(LifetimeId::from_slice(&bytes), Err(of("lifetime id")));
        assert_eq!(WriterNonce::from_slice(&bytes), Err(of("writer nonce")));
    }
    let nonce = WriterNonce::from_slice(&[0xab; 16]).unwrap();
    assert_eq!(nonce.as_bytes(), [0xab; 16]);
    assert_eq!(nonce.to_string(), "ab".repeat(16));
    assert_eq!(format!("{nonce:?}"), format!("WriterNonce({})", "ab".repeat(16)));
}

#[test]
fn a_session_id_follows_from_account_and_request() {
    let id = SessionId::for_request("alice", "request");
    assert_eq!(id, SessionId::for_request("alice", "request"));
    // The same letters, cut elsewhere, are another account.
    assert_ne!(id, SessionId::for_request("alicer", "equest"));
    assert_ne!(id, SessionId::for_request("alice", "request2"));
    assert_eq!(id.to_string().parse::<SessionId>().unwrap(), id);
    let mut hash = Sha256::digest(b"wakelog session\0\0\0\0\0\0\0\0\x05alicerequest");
    // A UUID of version 8 (custom) and the RFC's variant.
    hash[6] = hash[6] & 0x0f | 0x80;
    hash[8] = hash[8] & 0x3f | 0x80;
    assert_eq!(id.0.as_bytes(), &hash[..16]);
}

#[test]
fn a_lifetime_id_follows_from_session_request_and_generation() {
    let session: SessionId = TEXT.parse().unwrap();
    let id = LifetimeId::for_bind(session, "request", 258);
    assert_ne!(id, LifetimeId::for_bind(session, "request", 259));
    assert_ne!(id, LifetimeId::for_bind(session, "request2", 258));
    assert_ne!(id, LifetimeId::for_bind(SessionId(Uuid::nil()), "request", 258));
    let mut input = b"wakelog lifetime\0".to_vec();
    input.extend_from_slice(session.0.as_bytes());
    input.extend_from_slice(&[0, 0, 0, 0, 0, 0, 1, 2]);
    input.extend_from_slice(b"request");
    assert_eq!(id.as_bytes(), &Sha256::digest(input)[..16]);
}

#[test]
fn an_idempotency_key_has_one_written_form() {
    let nonce = WriterNonce([0xab; 16]);
    let hex = "ab".repeat(16);
    let key: IdempotencyKey = format!("{hex}-17").parse().unwrap();
    assert_eq!(
        key,
        IdempotencyKey {
            nonce,
            lifetime_seq: 17
        }
    );
    assert_eq!(key.to_string(), format!("{hex}-17"));
    let others = [
        format!("{}-17", hex.to_uppercase()),
        format!("{hex}-017"),
        format!("{hex}-+17"),
        format!("{hex}--17"),
        format!("{hex}-"),
        format!("{hex}-18446744073709551616"),
        format!("{hex}17"),
        format!("{}-17", &hex[..30]),
        format!("{}-17", &hex[..31]),
        format!("{hex}ab-17"),
        format!("{hex}-17 "),
        "-17".to_owned(),
        String::new(),
    ];
    for other in others {
        assert!(
            matches!(other.parse::<IdempotencyKey>(), Err(Error::IdempotencyKey { .. })),
            "{other}"
        );
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn ids_round_trip(bytes: [u8; 16], lifetime_seq: u64) {
        let session = SessionId(Uuid::from_bytes(bytes));
        prop_assert_eq!(session.to_string().parse(), Ok(session));
        prop_assert_eq!(LifetimeId::from_slice(&bytes), Ok(LifetimeId(bytes)));
        let key = IdempotencyKey { nonce: WriterNonce(bytes), lifetime_seq };
        prop_assert_eq!(key.to_string().parse(), Ok(key));
    }

    #[test]
    fn any_text_is_an_id_in_its_written_form_or_none(text in "[0-9a-fA-F+-]{0,60}") {
        if let Ok(key) = text.parse::<IdempotencyKey>() {
            prop_assert_eq!(key.to_string(), text.clone());
        }
        if let Ok(session) = text.parse::<SessionId>() {
            prop_assert_eq!(session.to_string(), text);
        }
    }
}
