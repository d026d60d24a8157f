//! Where a setting's value comes from: flags over `WAKELOG_*` variables over a TOML file over the default.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::keys::{KEYS, Key};
use crate::exit::Error;

/// The file that is read if none is named and it is there.
const DEFAULT_FILE: &str = "wakelog.toml";

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(String),
    File(PathBuf),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(key) => write!(formatter, "flag --{}", key.replace('_', "-")),
            Self::Variable(name) => write!(formatter, "variable {name}"),
            Self::File(path) => write!(formatter, "file {}", path.display()),
            Self::Default => formatter.write_str("default"),
        }
    }
}

/// One value and where it came from. No `Debug`: it may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) origin: Origin,
}

/// The values that are set, over all layers.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) values: BTreeMap<&'static str, Value>,
    /// librdkafka settings, only from the file.
    pub(crate) kafka: BTreeMap<String, String>,
}

/// What the layers are read from. A struct, so that tests need no real environment.
pub(crate) struct Sources<'a> {
    pub(crate) flags: &'a BTreeMap<&'static str, String>,
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) file: Option<&'a Path>,
}

impl Merged {
    /// Reads all layers, lowest first, so that a later one replaces an earlier one.
    pub(crate) fn read(sources: &Sources<'_>) -> Result<Self, Error> {
        let mut merged = Self::default();
        for key in KEYS {
            if let Some(text) = key.default {
                merged.set(key, text.to_owned(), Origin::Default);
            }
        }
        if let Some((path, text)) = read_file(sources)? {
            merged.read_toml(&path, &text)?;
        }
        for key in KEYS {
            let name = variable_name(key);
            if let Some(text) = (sources.variable)(&name).filter(|text| !text.is_empty()) {
                merged.set(key, text, Origin::Variable(name));
            }
        }
        for key in KEYS {
            if let Some(text) = sources.flags.get(key.name) {
                merged.set(key, text.clone(), Origin::Flag(key.name));
            }
        }
        Ok(merged)
    }

    fn set(&mut self, key: &Key, text: String, origin: Origin) {
        self.values.insert(key.name, Value { text, origin });
    }

    fn read_toml(&mut self, path: &Path, text: &str) -> Result<(), Error> {
        let wrong = |what: String| Error::usage(format!("configuration file {}: {what}", path.display()));
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
        for (name, value) in table {
            if let ("kafka", toml::Value::Table(settings)) = (name.as_str(), &value) {
                for (setting, value) in settings {
                    let text = scalar(value)
                        .ok_or_else(|| wrong(format!("`kafka.{setting}` is not a plain value")))?;
                    self.kafka.insert(setting.clone(), text);
                }
                continue;
            }
            let Some(key) = KEYS.iter().find(|key| key.name == name) else {
                let known = KEYS
                    .iter()
                    .map(|key| key.name)
                    .chain(["kafka"])
                    .collect::<Vec<_>>()
                    .join(", ");
                return Err(
                    wrong(format!("`{name}` is not a setting")).or_hint(format!("the settings are: {known}"))
                );
            };
            let text = scalar(&value).ok_or_else(|| wrong(format!("`{name}` is not a plain value")))?;
            self.set(key, text, Origin::File(path.to_path_buf()));
        }
        Ok(())
    }
}

/// The variable of a key.
pub(crate) fn variable_name(key: &Key) -> String {
    format!("WAKELOG_{}", key.name.to_ascii_uppercase())
}

fn read_file(sources: &Sources<'_>) -> Result<Option<(PathBuf, String)>, Error> {
    let named = sources.file.map(Path::to_path_buf).or_else(|| {
        (sources.variable)("WAKELOG_CONFIG")
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    });
    let (path, must_be_there) = match named {
        Some(path) => (path, true),
        None => (PathBuf::from(DEFAULT_FILE), false),
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_be_there => Ok(None),
        Err(error) => Err(Error::usage(format!(
            "configuration file {}: {error}",
            path.display()
        ))),
    }
}

fn scalar(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}
