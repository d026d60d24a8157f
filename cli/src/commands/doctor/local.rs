//! What is on this machine: the data folder, secrets, the announcement.

use std::path::PathBuf;

use super::Finding;
use crate::config::Settings;
use crate::discovery;
use crate::exit::Error;
use crate::services::secrets::is_shared;

const DATA_DIR: &str = "data folder";
const DISCOVERY: &str = "discovery";
const SECRETS: &str = "secrets";

pub(super) fn data_dir(settings: &Settings) -> Result<Vec<Finding>, Error> {
    if settings.brokers.is_some() && settings.database_url.is_some() {
        return Ok(vec![Finding::ok(
            DATA_DIR,
            "not needed: brokers and database are named",
        )]);
    }
    let path = settings.data_dir()?;
    if !path.is_dir() {
        let message = format!("{} does not exist", path.display());
        return Ok(vec![Finding::warn(DATA_DIR, message, "`wakelog up` creates it")]);
    }
    Ok(vec![lock(&path)])
}

#[cfg(feature = "embedded")]
fn lock(path: &std::path::Path) -> Finding {
    match wakelog_embedded::DataDir::lock(path) {
        Ok(_) => Finding::ok(
            DATA_DIR,
            format!("{} can be used, no stack holds it", path.display()),
        ),
        Err(wakelog_embedded::Error::InUse { .. }) => {
            Finding::ok(DATA_DIR, format!("{} is held by a running stack", path.display()))
        }
        Err(error) => Finding::error(DATA_DIR, crate::up::engines::engine_error(error)),
    }
}

#[cfg(not(feature = "embedded"))]
fn lock(path: &std::path::Path) -> Finding {
    let message = format!(
        "{} belongs to an embedded stack, which this build can't run",
        path.display()
    );
    Finding::warn(
        DATA_DIR,
        message,
        "give --brokers and --database-url, or use a build with embedded engines",
    )
}

pub(super) fn secrets(settings: &Settings) -> Result<Vec<Finding>, Error> {
    let data_dir = settings.data_dir()?;
    let files = [
        settings
            .token_key_file
            .clone()
            .or_else(|| in_data_dir(&data_dir, "lifetime-token.key")),
        settings
            .caller_token_file
            .clone()
            .or_else(|| in_data_dir(&data_dir, "caller-token")),
        settings.token_file.clone(),
    ];
    let files: std::collections::BTreeSet<PathBuf> = files.into_iter().flatten().collect();
    let findings: Vec<Finding> = files.into_iter().map(secret).collect();
    if findings.is_empty() {
        return Ok(vec![Finding::ok(SECRETS, "there are none yet")]);
    }
    Ok(findings)
}

fn in_data_dir(data_dir: &std::path::Path, name: &str) -> Option<PathBuf> {
    Some(data_dir.join(name)).filter(|path| path.is_file())
}

fn secret(path: PathBuf) -> Finding {
    match is_shared(&path) {
        Ok(false) => Finding::ok(SECRETS, format!("{} is for its owner alone", path.display())),
        Ok(true) => Finding::fail(
            SECRETS,
            format!("others than its owner may read {}", path.display()),
            format!("chmod 600 {}", path.display()),
        ),
        Err(error) => Finding::fail(
            SECRETS,
            format!("{}: {error}", path.display()),
            "correct the path, or create the file",
        ),
    }
}

pub(super) fn discovery() -> Vec<Finding> {
    let finding = match discovery::find() {
        Ok(None) => Finding::ok(DISCOVERY, "no `wakelog up` of this user announces itself"),
        Ok(Some(announced)) if !announced.caller_token_file.is_file() => Finding::fail(
            DISCOVERY,
            format!(
                "the announced token file {} is not there",
                announced.caller_token_file.display()
            ),
            "start `wakelog up` again, or name server and token with --server and --token-file",
        ),
        Ok(Some(announced)) if !is_running(announced.pid) => Finding::warn(
            DISCOVERY,
            format!(
                "process {} announced {}, and is gone",
                announced.pid, announced.endpoint
            ),
            "start `wakelog up` again",
        ),
        Ok(Some(announced)) => Finding::ok(
            DISCOVERY,
            format!("process {} announces {}", announced.pid, announced.endpoint),
        ),
        Err(error) => Finding::error(DISCOVERY, error),
    };
    vec![finding]
}

/// Whether there is such a process; where that can't be told, it is taken for running.
fn is_running(pid: u32) -> bool {
    let processes = std::path::Path::new("/proc");
    !processes.join("self").exists() || processes.join(pid.to_string()).exists()
}
