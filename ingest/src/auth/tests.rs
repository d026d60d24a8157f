use wakelog_contract::reason_of;

use super::*;

const SESSION: &str = "0190a5c0-0000-7000-8000-000000000001";

fn claims() -> LifetimeTokenClaims {
    LifetimeTokenClaims {
        session_id: SESSION.into(),
        lifetime_id: vec![7; 16].into(),
        generation: 3,
        partition: 2,
        expires_at_ms: 1_000,
        account: "ada".into(),
    }
}

fn signer() -> TokenSigner {
    TokenSigner::new(&[1; 32]).unwrap()
}

fn call_with(token: &str, now_ms: u64) -> Result<Identity, Status> {
    let mut metadata = MetadataMap::new();
    metadata.insert("authorization", format!("Bearer {token}").parse().unwrap());
    authenticate_at(&signer(), &metadata, now_ms)
}

#[test]
fn a_valid_token_names_a_lifetime() {
    let identity = call_with(&signer().sign(&claims()), 999).unwrap();
    assert_eq!(identity.lifetime, LifetimeId([7; 16]));
    assert_eq!((identity.generation, identity.partition), (3, 2));
    assert!(check_session(&identity, SESSION).is_ok());
    let foreign = check_session(&identity, "0190a5c0-0000-7000-8000-000000000002").unwrap_err();
    assert_eq!(reason_of(&foreign), Some(RefusalReason::TokenForeign));
}

#[test]
fn other_tokens_say_why_not() {
    let missing = authenticate_at(&signer(), &MetadataMap::new(), 0).unwrap_err();
    assert_eq!(reason_of(&missing), Some(RefusalReason::TokenMissing));
    let forged = call_with("nonsense", 0).unwrap_err();
    assert_eq!(reason_of(&forged), Some(RefusalReason::TokenForged));
    let expired = call_with(&signer().sign(&claims()), 1_000).unwrap_err();
    assert_eq!(reason_of(&expired), Some(RefusalReason::TokenExpired));
    let odd = LifetimeTokenClaims {
        lifetime_id: vec![7; 15].into(),
        ..claims()
    };
    let odd = call_with(&signer().sign(&odd), 0).unwrap_err();
    assert_eq!(reason_of(&odd), Some(RefusalReason::TokenForged));
}
