//! The archive: whether the bucket is there, and takes what is put into it.

use wakelog_archive::{BucketState, ObjectStore};

use super::Finding;
use crate::config::Settings;
use crate::services::archive::{archive_error, configured, unusable};

const ARCHIVE: &str = "archive";

pub(super) async fn archive(settings: &Settings) -> Vec<Finding> {
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
    vec![look_at(&objects).await]
}

async fn look_at(objects: &ObjectStore) -> Finding {
    let bucket = objects.options().bucket.clone();
    match objects.check().await {
        Ok(BucketState::Ready) => {}
        Ok(other) => return Finding::error(ARCHIVE, unusable(&other)),
        Err(error) => return Finding::error(ARCHIVE, archive_error(error)),
    }
    match objects.check_write().await {
        Ok(BucketState::Ready) => Finding::ok(
            ARCHIVE,
            format!("bucket {bucket} takes, returns and deletes objects"),
        ),
        Ok(other) => Finding::error(ARCHIVE, unusable(&other)),
        Err(error) => Finding::error(ARCHIVE, archive_error(error)),
    }
}
