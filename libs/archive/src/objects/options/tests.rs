//! Options that can't work are refused, and secrets are not shown.

use super::*;

#[test]
fn options_that_can_not_work_are_refused() {
    type Change = fn(&mut Options);
    let good = Options::new("us-east-1", "bucket");
    good.check().unwrap();
    let changes: &[Change] = &[
        |options| options.endpoint = Some("localhost:9000".to_owned()),
        |options| options.region = String::new(),
        |options| options.bucket = String::new(),
        |options| options.access_key = Some("key".to_owned()),
        |options| options.secret_key = Some("key".to_owned()),
        |options| options.session_token = Some("token".to_owned()),
        |options| options.prefix = Some(String::new()),
        |options| options.prefix = Some("/a".to_owned()),
        |options| options.prefix = Some("a/".to_owned()),
        |options| options.prefix = Some("a/../b".to_owned()),
        |options| options.attempt_timeout = Duration::ZERO,
        |options| options.retry.max_attempts = 0,
        |options| options.part_bytes = 1024,
        |options| options.part_bytes = u64::MAX,
        |options| options.concurrency = 0,
    ];
    for (position, change) in changes.iter().enumerate() {
        let mut options = good.clone();
        change(&mut options);
        assert!(
            matches!(options.check(), Err(Error::Configuration { .. })),
            "change {position}"
        );
    }
}

#[test]
fn secrets_are_not_shown() {
    let options = Options {
        access_key: Some("AKID".to_owned()),
        secret_key: Some("very-secret".to_owned()),
        session_token: Some("very-secret-too".to_owned()),
        ..Options::new("us-east-1", "bucket")
    };
    let shown = format!("{options:?}");
    assert!(
        shown.contains("AKID") && !shown.contains("very-secret"),
        "{shown}"
    );
}

#[test]
fn names_are_below_the_prefix() {
    let mut options = Options::new("us-east-1", "bucket");
    assert_eq!(options.stored_prefix(), "");
    options.prefix = Some("a/b".to_owned());
    assert_eq!(options.stored_prefix(), "a/b/");
}
