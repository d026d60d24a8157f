//! The settings there are.

/// One setting.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its name in the file; flag and variable follow from it.
    pub(crate) name: &'static str,
    /// What it is printed as.
    pub(crate) kind: Kind,
    /// Its value if no layer sets it.
    pub(crate) default: Option<&'static str>,
    /// What happens if it is not set; shown by `wakelog config`.
    pub(crate) unset: &'static str,
}

/// How a setting is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A quoted text.
    Text,
    /// A number or a truth value, printed bare.
    Bare,
    /// Never printed.
    Secret,
    /// A URL that may hold a password.
    SecretUrl,
}

const fn key(name: &'static str, kind: Kind, default: Option<&'static str>, unset: &'static str) -> Key {
    Key {
        name,
        kind,
        default,
        unset,
    }
}

/// All settings, in the order in which they are shown.
pub(crate) const KEYS: &[Key] = &[
    key(
        "server",
        Kind::Text,
        None,
        "the server that `wakelog up` announced, else http://127.0.0.1:7420",
    ),
    key(
        "relay",
        Kind::Text,
        None,
        "where entries are sent, the same as server",
    ),
    key("token", Kind::Secret, None, "read from token_file"),
    key(
        "token_file",
        Kind::Text,
        None,
        "the file that `wakelog up` announced",
    ),
    key("data_dir", Kind::Text, None, "~/.local/share/wakelog"),
    key("brokers", Kind::Text, None, "up: an embedded log"),
    key("database_url", Kind::SecretUrl, None, "up: an embedded database"),
    key(
        "database_connections",
        Kind::Bare,
        None,
        "8; with an embedded database 1",
    ),
    key("topic", Kind::Text, Some("wakelog.transcript"), ""),
    key(
        "group",
        Kind::Text,
        None,
        "the persister's consumer group, wakelog",
    ),
    key(
        "partitions",
        Kind::Bare,
        None,
        "8; with an embedded log 4 (only when the topic is created)",
    ),
    key("replication", Kind::Bare, Some("1"), ""),
    key("s3_endpoint", Kind::Text, None, "AWS"),
    key(
        "s3_bucket",
        Kind::Text,
        None,
        "with an embedded database an embedded archive; else history stays in the database",
    ),
    key("s3_region", Kind::Text, Some("us-east-1"), ""),
    key("s3_access_key", Kind::Text, None, "AWS_ACCESS_KEY_ID"),
    key("s3_secret_key", Kind::Secret, None, "AWS_SECRET_ACCESS_KEY"),
    key(
        "s3_prefix",
        Kind::Text,
        None,
        "objects are named from the bucket's top",
    ),
    key("s3_path_style", Kind::Bare, Some("true"), ""),
    key(
        "spool_dir",
        Kind::Text,
        None,
        "the system's folder for temporary files",
    ),
    key("archive_valve_bytes", Kind::Bare, Some("67108864"), ""),
    key("archive_resweep_seconds", Kind::Bare, Some("600"), ""),
    key(
        "listen",
        Kind::Text,
        None,
        "up, ingest 127.0.0.1:7420; reconstruct 127.0.0.1:7422",
    ),
    key(
        "http_listen",
        Kind::Text,
        None,
        "up, ingest 127.0.0.1:7421; reconstruct 127.0.0.1:7423; persist 127.0.0.1:7425; archive 127.0.0.1:7427",
    ),
    key(
        "token_key_file",
        Kind::Text,
        None,
        "up: lifetime-token.key in data_dir",
    ),
    key(
        "caller_token_file",
        Kind::Text,
        None,
        "up: caller-token in data_dir",
    ),
    key("discovery", Kind::Bare, Some("true"), ""),
    key("log", Kind::Text, None, "services info, others warn"),
    key("log_format", Kind::Text, Some("text"), ""),
];
