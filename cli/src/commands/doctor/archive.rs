//! The archive: whether the bucket is there, takes what is put into it, and is that of this log.

use wakelog_archive::ObjectStore;
use wakelog_stream::LogReader;

use super::Finding;
use crate::config::Settings;
use crate::services::archive::{OTHER_LOG_HINT, check, configured, misfit};

const ARCHIVE: &str = "archive";

pub(super) async fn archive(settings: &Settings, log: Option<LogReader>) -> Vec<Finding> {
    let objects = match configured(settings) {
        Ok(Some(objects)) => objects,
        Ok(None) if settings.database_url.is_none() => {
            return vec![Finding::skip(
                ARCHIVE,
                "behind its stack, so it was not looked at",
            )];
        }
        Ok(None) => {
            return vec![Finding::skip(
                ARCHIVE,
                "no bucket is named: history stays in the database",
            )];
        }
        Err(error) => return vec![Finding::error(ARCHIVE, error)],
    };
    let mut findings = vec![look_at(&objects).await];
    if let Some(log) = log {
        findings.extend(other_log(&objects, &log, &settings.topic).await);
    }
    findings
}

async fn other_log(objects: &ObjectStore, log: &LogReader, topic: &str) -> Option<Finding> {
    match misfit(objects, log, topic).await {
        Ok(misfit) => misfit.map(|misfit| Finding::fail(ARCHIVE, misfit, OTHER_LOG_HINT)),
        // An archive that is away has its finding.
        Err(_) => None,
    }
}

async fn look_at(objects: &ObjectStore) -> Finding {
    match check(objects).await {
        Ok(()) => Finding::ok(
            ARCHIVE,
            format!(
                "bucket {} takes, returns and deletes objects",
                objects.options().bucket
            ),
        ),
        Err(error) => Finding::error(ARCHIVE, error),
    }
}
