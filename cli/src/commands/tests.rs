use super::*;

#[test]
fn a_token_file_may_hold_a_bare_token_or_an_account_and_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "# mine\n\n  0123456789abcdef \nother\n").unwrap();
    assert_eq!(token_of_file(&path).unwrap(), "0123456789abcdef");
    std::fs::write(&path, "local 0123456789abcdef\n").unwrap();
    assert_eq!(token_of_file(&path).unwrap(), "0123456789abcdef");
    std::fs::write(&path, "#\n").unwrap();
    assert!(token_of_file(&path).is_err());
}

#[test]
fn a_session_id_is_checked_before_it_is_sent() {
    assert!(session_id("3F2504E0-4F89-11D3-9A0C-0305E82C3301").is_err());
    assert!(session_id("../x").is_err());
    assert!(session_id("3f2504e0-4f89-11d3-9a0c-0305e82c3301").is_ok());
}

#[test]
fn a_label_has_one_value() {
    let labels = |pairs: &[(&str, &str)]| {
        let given: Vec<_> = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        labels_of(&given)
    };
    assert_eq!(labels(&[("a", "1"), ("b", "1"), ("a", "1")]).unwrap().len(), 2);
    let error = labels(&[("a", "1"), ("a", "2")]).unwrap_err();
    assert_eq!(error.exit, wakelog_contract::Exit::Usage);
}
