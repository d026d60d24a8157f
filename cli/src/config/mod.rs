//! The effective configuration.
//!
//! | module | decision |
//! |---|---|
//! | `addresses` | what a list of addresses looks like |
//! | `keys` | which settings there are |
//! | `layers` | which layer's value counts |
//! | `hide` | what of a secret is shown |

mod addresses;
pub(crate) mod hide;
pub(crate) mod keys;
pub(crate) mod layers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::exit::Error;
use addresses::{Brokers, Endpoints};
use hide::{HIDDEN, Secret, hide_in_url, hide_kafka};
use keys::{KEYS, Kind};
use layers::{Merged, Sources};

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("it must be text or json"),
        }
    }
}

/// Where the archive is, and how much may stay out of it.
#[derive(Clone)]
pub(crate) struct S3Settings {
    pub(crate) endpoint: Option<String>,
    /// Absent: no archive but an embedded one.
    pub(crate) bucket: Option<String>,
    pub(crate) region: String,
    pub(crate) access_key: Option<String>,
    pub(crate) secret_key: Option<Secret>,
    pub(crate) prefix: Option<String>,
    pub(crate) path_style: bool,
    pub(crate) spool_dir: Option<PathBuf>,
    pub(crate) valve_bytes: u64,
    /// How long after the objects of an erased session were deleted they are deleted once more.
    pub(crate) resweep_after: Duration,
}

impl S3Settings {
    fn of(merged: &Merged) -> Result<Self, Error> {
        Ok(Self {
            endpoint: text(merged, "s3_endpoint"),
            bucket: text(merged, "s3_bucket"),
            region: text(merged, "s3_region").unwrap_or_default(),
            access_key: text(merged, "s3_access_key"),
            secret_key: text(merged, "s3_secret_key").map(Secret),
            prefix: text(merged, "s3_prefix"),
            path_style: parsed(merged, "s3_path_style")?.unwrap_or(true),
            spool_dir: text(merged, "spool_dir").map(PathBuf::from),
            valve_bytes: at_least_one(merged, "archive_valve_bytes")?.unwrap_or(u64::MAX),
            resweep_after: Duration::from_secs(
                at_least_one(merged, "archive_resweep_seconds")?.unwrap_or(u64::MAX),
            ),
        })
    }
}

/// The effective configuration, typed.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) server: Option<String>,
    pub(crate) relay: Option<String>,
    pub(crate) token: Option<Secret>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) brokers: Option<String>,
    pub(crate) database_url: Option<Secret>,
    pub(crate) database_connections: Option<u32>,
    pub(crate) topic: String,
    pub(crate) group: Option<String>,
    pub(crate) partitions: Option<i32>,
    pub(crate) replication: i32,
    pub(crate) s3: S3Settings,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) http_listen: Option<SocketAddr>,
    pub(crate) token_key_file: Option<PathBuf>,
    pub(crate) caller_token_file: Option<PathBuf>,
    pub(crate) discovery: bool,
    pub(crate) log: Option<String>,
    pub(crate) log_format: LogFormat,
    pub(crate) kafka: BTreeMap<String, String>,
    merged: Merged,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.to_toml())
    }
}

impl Settings {
    /// Reads all layers of this process.
    pub(crate) fn load(flags: &BTreeMap<&'static str, String>, file: Option<&Path>) -> Result<Self, Error> {
        let variable = |name: &str| std::env::var(name).ok();
        Self::of(Merged::read(&Sources {
            flags,
            variable: &variable,
            file,
        })?)
    }

    fn of(merged: Merged) -> Result<Self, Error> {
        Ok(Self {
            server: parsed::<Endpoints>(&merged, "server")?.map(|list| list.0),
            relay: parsed::<Endpoints>(&merged, "relay")?.map(|list| list.0),
            token: text(&merged, "token").map(Secret),
            token_file: text(&merged, "token_file").map(PathBuf::from),
            data_dir: text(&merged, "data_dir").map(PathBuf::from),
            brokers: parsed::<Brokers>(&merged, "brokers")?.map(|list| list.0),
            database_url: text(&merged, "database_url").map(Secret),
            database_connections: at_least_one(&merged, "database_connections")?,
            topic: text(&merged, "topic").unwrap_or_default(),
            group: text(&merged, "group"),
            partitions: at_least_one(&merged, "partitions")?,
            replication: at_least_one(&merged, "replication")?.unwrap_or(1),
            s3: S3Settings::of(&merged)?,
            listen: parsed(&merged, "listen")?,
            http_listen: parsed(&merged, "http_listen")?,
            token_key_file: text(&merged, "token_key_file").map(PathBuf::from),
            caller_token_file: text(&merged, "caller_token_file").map(PathBuf::from),
            discovery: parsed(&merged, "discovery")?.unwrap_or(true),
            log: text(&merged, "log"),
            log_format: parsed(&merged, "log_format")?.unwrap_or(LogFormat::Text),
            kafka: merged.kafka.clone(),
            merged,
        })
    }

    /// The data folder, with its default.
    pub(crate) fn data_dir(&self) -> Result<PathBuf, Error> {
        let default = || crate::discovery::home().map(|home| home.join(".local/share/wakelog"));
        self.data_dir.clone().or_else(default).ok_or_else(|| {
            Error::usage("there is no data folder: HOME is not set").or_hint("give one with --data-dir")
        })
    }

    /// A text that a command can't do without.
    pub(crate) fn required<'a, T>(&self, value: &'a Option<T>, key: &str) -> Result<&'a T, Error> {
        value.as_ref().ok_or_else(|| {
            let flag = key.replace('_', "-");
            Error::usage(format!("`{key}` is not set")).or_hint(format!(
                "give --{flag}, set WAKELOG_{} or put it into the file",
                key.to_ascii_uppercase()
            ))
        })
    }

    /// The effective configuration as TOML, each value with where it came from, secrets hidden.
    pub(crate) fn to_toml(&self) -> String {
        let mut lines = Vec::new();
        for key in KEYS {
            let Some(value) = self.merged.values.get(key.name) else {
                lines.push(format!("# {} is not set: {}", key.name, key.unset));
                continue;
            };
            let shown = match key.kind {
                Kind::Text => quoted(&value.text),
                Kind::Bare => value.text.clone(),
                Kind::Secret => quoted(HIDDEN),
                Kind::SecretUrl => quoted(&hide_in_url(&value.text)),
            };
            lines.push(format!("{} = {shown}  # {}", key.name, value.origin));
        }
        if !self.kafka.is_empty() {
            lines.push("\n[kafka]".to_owned());
            for (name, value) in &self.kafka {
                lines.push(format!("{} = {}", quoted(name), quoted(hide_kafka(name, value))));
            }
        }
        lines.join("\n") + "\n"
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn text(merged: &Merged, key: &str) -> Option<String> {
    merged.values.get(key).map(|value| value.text.clone())
}

fn parsed<T>(merged: &Merged, key: &str) -> Result<Option<T>, Error>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    let Some(value) = merged.values.get(key) else {
        return Ok(None);
    };
    let wrong = |error: T::Err| {
        Error::usage(format!(
            "`{key}` from {} is {:?}: {error}",
            value.origin, value.text
        ))
    };
    value.text.parse().map(Some).map_err(wrong)
}

fn at_least_one<T>(merged: &Merged, key: &str) -> Result<Option<T>, Error>
where
    T: FromStr + PartialOrd + From<u8>,
    T::Err: std::fmt::Display,
{
    match parsed(merged, key)? {
        Some(number) if number < T::from(1) => Err(Error::usage(format!("`{key}` must be at least 1"))),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests;
