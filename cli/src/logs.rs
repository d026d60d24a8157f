//! What is logged, and how: to the standard error, as text or JSON.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, Settings};
use crate::exit::Error;

#[cfg(feature = "embedded")]
const QUIET_ENGINES: &str = wakelog_embedded::QUIET_TARGETS;
#[cfg(not(feature = "embedded"))]
const QUIET_ENGINES: &str = "hyper=warn";

/// What it says comes back as an error, in better words.
const QUIET_POOL: &str = "sqlx_core::pool=off";

/// Starts logging; `usual` is the filter where none was asked for.
pub(crate) fn start(settings: &Settings, usual: &str) -> Result<(), Error> {
    let wanted = settings.log.as_deref().unwrap_or(usual);
    // What is asked for comes last, and so wins over what is quiet by default.
    let filter = EnvFilter::builder()
        .parse(if wanted == "off" {
            wanted.to_owned()
        } else {
            format!("{QUIET_ENGINES},{QUIET_POOL},{wanted}")
        })
        .map_err(|error| Error::usage(format!("`log` is {wanted:?}: {error}")))?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Json => logs.json().flatten_event(true).init(),
        LogFormat::Text => logs.with_ansi(std::io::stderr().is_terminal()).init(),
    }
    Ok(())
}
