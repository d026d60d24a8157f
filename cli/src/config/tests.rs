use std::io::Write as _;

use super::*;

fn settings(
    flags: &[(&'static str, &str)],
    variables: &[(&str, &str)],
    file: Option<&str>,
) -> Result<Settings, Error> {
    let flags = flags
        .iter()
        .map(|(key, text)| (*key, (*text).to_owned()))
        .collect();
    let variables: BTreeMap<String, String> = variables
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    let path = file.map(|text| {
        let mut path = tempfile::NamedTempFile::new().unwrap();
        path.write_all(text.as_bytes()).unwrap();
        path
    });
    let variable = |name: &str| variables.get(name).cloned();
    let file = path.as_ref().map(|path| path.path());
    Settings::of(Merged::read(&Sources {
        flags: &flags,
        variable: &variable,
        file,
    })?)
}

#[test]
fn flags_win_over_variables_over_the_file_over_the_default() {
    let file = Some("topic = 'file'\nlisten = '127.0.0.1:1'\nreplication = 2\n");
    let variables = [("WAKELOG_TOPIC", "variable"), ("WAKELOG_LISTEN", "127.0.0.1:2")];
    let all = settings(&[("topic", "flag")], &variables, file).unwrap();
    assert_eq!(all.topic, "flag");
    assert_eq!(all.listen.unwrap().port(), 2);
    assert_eq!(all.replication, 3 - 1);
    assert_eq!(settings(&[], &[], None).unwrap().topic, "wakelog.transcript");
}

#[test]
fn an_empty_variable_is_not_set() {
    assert_eq!(
        settings(&[], &[("WAKELOG_TOPIC", "")], None).unwrap().topic,
        "wakelog.transcript"
    );
}

#[test]
fn an_unknown_key_in_the_file_is_named() {
    let error = settings(&[], &[], Some("brokerz = 'x'\n")).unwrap_err();
    assert!(error.message.contains("`brokerz`"), "{error}");
    assert_eq!(error.exit, wakelog_contract::Exit::Usage);
}

#[test]
fn a_wrong_value_is_told_with_where_it_came_from() {
    let error = settings(&[], &[("WAKELOG_PARTITIONS", "many")], None).unwrap_err();
    assert!(error.message.contains("variable WAKELOG_PARTITIONS"), "{error}");
    assert!(settings(&[("partitions", "0")], &[], None).is_err());
    assert!(settings(&[("log_format", "xml")], &[], None).is_err());
    assert!(settings(&[], &[], Some("topic = ['a']\n")).is_err());
}

#[test]
fn an_address_that_is_none_is_told_with_where_it_came_from() {
    for (key, text, expected) in [
        ("server", "'3'", "it must start with http://"),
        ("server", "3", "it must start with http://"),
        ("relay", "'http://a:1,https://b:1'", "TLS is not built yet"),
        ("brokers", "'kafka-1'", "a broker is host:port"),
        ("brokers", "'kafka-1:9092,'", "a broker is host:port"),
        ("brokers", "'kafka 1:9092'", "a broker is host:port"),
        ("brokers", "'kafka-1:http'", "a broker is host:port"),
    ] {
        let error = settings(&[], &[], Some(&format!("{key} = {text}\n"))).unwrap_err();
        assert_eq!(error.exit, wakelog_contract::Exit::Usage);
        assert!(
            error.message.starts_with(&format!("`{key}` from file")),
            "{error}"
        );
        assert!(error.message.contains(expected), "{error}");
        assert!(error.message.contains(text.trim_matches('\'')), "{error}");
    }
    for brokers in ["h:9092", "a:1, b:2", "[::1]:9092", "SASL_SSL://h:9092"] {
        let all = settings(&[("brokers", brokers)], &[], None).unwrap();
        assert_eq!(all.brokers.as_deref(), Some(brokers));
    }
}

#[test]
fn a_named_file_must_be_there() {
    let flags = BTreeMap::new();
    let sources = Sources {
        flags: &flags,
        variable: &|_| None,
        file: Some(Path::new("/nonexistent/w.toml")),
    };
    assert!(Merged::read(&sources).is_err());
    let variable = |name: &str| (name == "WAKELOG_CONFIG").then(|| "/nonexistent/w.toml".to_owned());
    assert!(
        Merged::read(&Sources {
            flags: &flags,
            variable: &variable,
            file: None
        })
        .is_err()
    );
}

#[test]
fn secrets_are_hidden_and_origins_shown() {
    let variables = [
        ("WAKELOG_TOKEN", "s3cret-token"),
        (
            "WAKELOG_DATABASE_URL",
            "postgres://u:s3cret@h/db?sslpassword=s3cret&x=1",
        ),
    ];
    let file = Some("[kafka]\n'sasl.username' = 'me'\n'sasl.password' = 's3cret'\n");
    let all = settings(&[("brokers", "h:9092")], &variables, file).unwrap();
    let shown = all.to_toml();
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(!format!("{:?}", all.token).contains("s3cret"));
    assert!(
        shown.contains("brokers = \"h:9092\"  # flag --brokers"),
        "{shown}"
    );
    assert!(shown.contains("topic = \"wakelog.transcript\"  # default"));
    assert!(shown.contains("token = \"<hidden>\"  # variable WAKELOG_TOKEN"));
    assert!(shown.contains("u:hidden@h/db"));
    assert!(shown.contains("\"sasl.username\" = \"me\""));
    shown.parse::<toml::Table>().unwrap();
}

#[test]
fn every_flag_is_a_key() {
    for key in KEYS {
        assert!(key.default.is_some() || !key.unset.is_empty(), "{}", key.name);
    }
}
