use super::*;

fn warnings(settings: &[(&str, &str)]) -> Vec<String> {
    warnings_of(
        &settings
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    )
}

#[test]
fn good_settings_and_none_at_all_are_not_worth_a_warning() {
    assert!(warnings(&[]).is_empty());
    let good = [
        ("cleanup.policy", "delete"),
        ("message.timestamp.type", "LogAppendTime"),
        ("retention.bytes", "-1"),
        ("min.insync.replicas", "2"),
        ("max.message.bytes", "1048588"),
    ];
    assert!(warnings(&good).is_empty());
}

#[test]
fn each_bad_setting_is_named() {
    for (key, value) in [
        ("cleanup.policy", "compact,delete"),
        ("message.timestamp.type", "CreateTime"),
        ("retention.bytes", "1073741824"),
        ("min.insync.replicas", "1"),
        ("max.message.bytes", "524288"),
    ] {
        let warnings = warnings(&[(key, value)]);
        assert_eq!(warnings.len(), 1, "{key}");
        assert!(warnings[0].starts_with(key), "{warnings:?}");
    }
}
