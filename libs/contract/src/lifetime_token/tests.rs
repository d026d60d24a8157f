use super::*;

fn claims() -> LifetimeTokenClaims {
    LifetimeTokenClaims {
        session_id: "0190a5c0-0000-7000-8000-000000000001".into(),
        lifetime_id: vec![7; 16].into(),
        generation: 3,
        partition: 11,
        expires_at_ms: 1_000,
        account: "a".repeat(128),
    }
}

fn signer(fill: u8) -> TokenSigner {
    TokenSigner::new(&[fill; 32]).unwrap()
}

#[test]
fn a_token_says_what_was_signed_until_it_expires() {
    let token = signer(1).sign(&claims());
    assert_eq!(signer(1).verify(&token, 999), Ok(claims()));
    assert_eq!(
        signer(1).verify(&token, 1_000),
        Err(TokenError::Expired(claims()))
    );
}

#[test]
fn another_key_forges() {
    let token = signer(1).sign(&claims());
    assert_eq!(signer(2).verify(&token, 0), Err(TokenError::Forged));
    assert_eq!(
        signer(2).verify(&token, u64::MAX),
        Err(TokenError::Forged),
        "expiry is not looked at first"
    );
}

#[test]
fn every_flipped_character_forges() {
    let token = signer(1).sign(&claims());
    for index in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
        let flipped = String::from_utf8(bytes).unwrap();
        assert_eq!(
            signer(1).verify(&flipped, 0),
            Err(TokenError::Forged),
            "character {index}"
        );
    }
}

#[test]
fn malformed_and_oversize_tokens_forge() {
    let token = signer(1).sign(&claims());
    let (head, mac) = token.split_once('.').unwrap();
    let shorter_mac = &mac[..mac.len() - 4];
    for bad in [
        String::new(),
        ".".into(),
        head.to_owned(),
        format!("{head}."),
        format!(".{mac}"),
        format!("{token}="),
        format!("{token}.{mac}"),
        format!("{head}.{shorter_mac}"),
        "x".repeat(MAX_TOKEN_BYTES + 1),
        format!("{}.{mac}", "A".repeat(100_000)),
    ] {
        assert_eq!(
            signer(1).verify(&bad, 0),
            Err(TokenError::Forged),
            "{} bytes",
            bad.len()
        );
    }
}

#[test]
fn the_largest_claims_fit() {
    let mut largest = claims();
    largest.generation = u64::MAX;
    largest.expires_at_ms = u64::MAX;
    largest.partition = i32::MAX;
    let token = signer(1).sign(&largest);
    assert!(token.len() <= MAX_TOKEN_BYTES);
    assert_eq!(signer(1).verify(&token, 0), Ok(largest));
}

#[test]
fn short_keys_are_refused_and_generated_ones_differ() {
    assert_eq!(
        TokenSigner::new(&[0; 31]).unwrap_err(),
        Error::KeyTooShort {
            actual: 31,
            least: 32
        }
    );
    let (one, other) = (TokenSigner::generate_key(), TokenSigner::generate_key());
    assert!(TokenSigner::new(&one).is_ok());
    assert_ne!(one, other);
}

#[test]
fn debug_output_holds_no_key() {
    assert_eq!(format!("{:?}", signer(0x41)), "TokenSigner(secret)");
}
