//! `wakelog doctor`: everything that Wakelog depends on, one by one, what is wrong with it and how to mend it.

mod archive;
mod engines;
mod local;
mod server;

use serde_json::json;
use wakelog_contract::Exit;

use crate::args::DoctorArgs;
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{print, print_json};

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Ok,
    /// It was not looked at.
    Skip,
    Warn,
    Fail,
}

/// One check's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) level: Level,
    pub(crate) message: String,
    pub(crate) mend: Option<String>,
}

impl Finding {
    pub(crate) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Ok,
            message: message.into(),
            mend: None,
        }
    }

    pub(crate) fn skip(check: &'static str, message: impl Into<String>) -> Self {
        Self {
            level: Level::Skip,
            ..Self::ok(check, message)
        }
    }

    pub(crate) fn warn(check: &'static str, message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Warn,
            message: message.into(),
            mend: Some(mend.into()),
        }
    }

    pub(crate) fn fail(check: &'static str, message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Fail,
            message: message.into(),
            mend: Some(mend.into()),
        }
    }

    pub(crate) fn error(check: &'static str, error: Error) -> Self {
        Self {
            check,
            level: Level::Fail,
            message: error.message,
            mend: error.hint.map(|hint| without_doctor(&hint)),
        }
    }

    fn line(&self) -> String {
        let level = self.level.name();
        let mend = self
            .mend
            .as_ref()
            .map_or(String::new(), |mend| format!("\n{:24}{mend}", ""));
        format!("{level:<5} {:<17} {}{mend}\n", self.check, self.message)
    }
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Skip => "skip",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// A hint without the advice to run what runs already.
fn without_doctor(hint: &str) -> String {
    let clauses = hint.split_inclusive(['?', ';', ',']);
    let kept: String = clauses
        .filter(|clause| !clause.contains("`wakelog doctor`"))
        .collect();
    match kept.trim().trim_end_matches([';', ',']) {
        "" => "the log of its process says more".to_owned(),
        kept => kept.to_owned(),
    }
}

pub(crate) async fn run(settings: &Settings, args: &DoctorArgs) -> Result<Exit, Error> {
    let mut report = Report {
        json: args.json,
        failed: false,
    };
    report.take(local::data_dir(settings)?)?;
    report.take(local::secrets(settings)?)?;
    report.take(local::discovery())?;
    report.take(server::server(settings).await)?;
    report.take(server::readiness(settings).await)?;
    let log = engines::log(settings).await;
    report.take(log.findings)?;
    let reader = log.topic.reader();
    report.take(engines::database(settings, log.topic).await)?;
    report.take(archive::archive(settings, reader).await)?;
    Ok(if report.failed {
        Exit::Dependency
    } else {
        Exit::Done
    })
}

/// Prints findings as they come: the later checks may take a while.
struct Report {
    json: bool,
    failed: bool,
}

impl Report {
    fn take(&mut self, findings: Vec<Finding>) -> Result<(), Error> {
        for finding in findings {
            self.failed |= finding.level == Level::Fail;
            if self.json {
                print_json(&json!({
                    "check": finding.check,
                    "level": finding.level.name(),
                    "message": finding.message,
                    "mend": finding.mend,
                }))?;
            } else {
                print(&finding.line())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
