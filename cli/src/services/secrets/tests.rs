use super::*;

#[test]
fn secrets_are_drawn_once_and_private() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("lifetime-token.key");
    signer_or_new(&key).unwrap();
    let first = std::fs::read(&key).unwrap();
    signer_or_new(&key).unwrap();
    assert_eq!(std::fs::read(&key).unwrap(), first);
    assert_eq!(first.len(), 32);
    assert!(!is_shared(&key).unwrap());

    let tokens = folder.path().join("caller-token");
    let callers = caller_tokens_or_new(&tokens).unwrap();
    let token = crate::commands::token_of_file(&tokens).unwrap();
    assert_eq!(callers.account_of(&token), Some(LOCAL_ACCOUNT));
    assert!(!is_shared(&tokens).unwrap());
}

#[test]
fn a_key_that_is_absent_or_too_short_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    assert_eq!(signer(&path).err().unwrap().exit, wakelog_contract::Exit::Usage);
    std::fs::write(&path, b"short").unwrap();
    assert_eq!(signer(&path).err().unwrap().exit, wakelog_contract::Exit::Usage);
}
