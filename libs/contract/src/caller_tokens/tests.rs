use std::io::Write as _;

use super::*;

const TOKEN: &str = "correct-horse-battery";

#[test]
fn a_file_names_accounts() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(
        file,
        "# comment\n\n  ada   {TOKEN}\nada another-token-of-ada\ngrace\ttoken-of-grace-0001\n"
    )
    .unwrap();
    let tokens = CallerTokens::from_file(file.path()).unwrap();
    assert_eq!(tokens.account_of(TOKEN), Some("ada"));
    assert_eq!(tokens.account_of("another-token-of-ada"), Some("ada"));
    assert_eq!(tokens.account_of("token-of-grace-0001"), Some("grace"));
    assert_eq!(tokens.account_of("token-of-grace-0002"), None);
    assert_eq!(tokens.account_of(""), None);
}

#[test]
fn errors_name_the_line_and_never_the_token() {
    let secret = "secret-secret-secret";
    for (text, line) in [
        (format!("ada {TOKEN}\nada {secret} more\n"), 2),
        (format!("{secret}\n"), 1),
        ("# x\n\nada shortsecret\n".to_owned(), 3),
        (format!("ada {}secret\n", "x".repeat(600)), 1),
        (format!("{} {secret}\n", "a".repeat(129)), 1),
        (format!("ada {secret}\ngrace {secret}\n"), 2),
        (format!("ada {secret}\u{fc}\n"), 1),
    ] {
        let error = CallerTokens::from_text(&text).unwrap_err();
        assert!(
            matches!(error, Error::TokenFileLine { line: found, .. } if found == line),
            "{error}"
        );
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
}

#[test]
fn an_empty_or_missing_file_is_an_error() {
    assert_eq!(
        CallerTokens::from_text("# nobody\n").unwrap_err(),
        Error::NoTokens
    );
    let missing = CallerTokens::from_file("/nowhere/tokens").unwrap_err();
    assert!(matches!(missing, Error::TokenFileUnreadable { .. }));
}

#[test]
fn a_single_token_stands_for_its_account() {
    let tokens = CallerTokens::single(TOKEN, "ada").unwrap();
    assert_eq!(tokens.account_of(TOKEN), Some("ada"));
    assert!(CallerTokens::single("short", "ada").is_err());
    assert_eq!(format!("{tokens:?}"), "CallerTokens(1 secret)");
}

#[test]
fn bearer_reads_the_authorization_header() {
    let mut metadata = MetadataMap::new();
    assert_eq!(bearer(&metadata), None);
    for (value, token) in [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        ("Bearer  abc ", Some("abc")),
        ("Bearer ", None),
        ("Bearer", None),
        ("Basic abc", None),
        ("abc", None),
    ] {
        metadata.insert("authorization", value.parse().unwrap());
        assert_eq!(bearer(&metadata), token, "{value:?}");
    }
}
