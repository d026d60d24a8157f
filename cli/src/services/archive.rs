//! The object store that the settings name, and the archiver on it.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wakelog_archive::{BucketState, ObjectStore};
use wakelog_persister::replay::archive_fits;
use wakelog_store::Store;
use wakelog_stream::LogReader;

use super::health::Health;
use super::supervisor::supervise;
use super::{service_error, store_error, stream_error};
use crate::config::{S3Settings, Settings};
use crate::exit::{Error, with_sources};
use crate::up::engines::Engines;

/// The variables that other programs read the keys from.
const ACCESS_KEY_VARIABLE: &str = "AWS_ACCESS_KEY_ID";
const SECRET_KEY_VARIABLE: &str = "AWS_SECRET_ACCESS_KEY";

/// The archive that the settings name; `None` if they name no bucket.
pub(crate) fn configured(settings: &Settings) -> Result<Option<ObjectStore>, Error> {
    let S3Settings {
        endpoint,
        bucket,
        region,
        access_key,
        secret_key,
        prefix,
        path_style,
        ..
    } = &settings.s3;
    let Some(bucket) = bucket else {
        return Ok(None);
    };
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let access_key = access_key.clone().or_else(|| variable(ACCESS_KEY_VARIABLE));
    let secret_key = secret_key
        .as_ref()
        .map(|secret| secret.0.clone())
        .or_else(|| variable(SECRET_KEY_VARIABLE));
    let (Some(access_key), Some(secret_key)) = (access_key, secret_key) else {
        return Err(
            Error::usage(format!("bucket {bucket} is named, its access key or secret key is not")).or_hint(
                "set WAKELOG_S3_ACCESS_KEY and WAKELOG_S3_SECRET_KEY, or s3_access_key and s3_secret_key in the file",
            ),
        );
    };
    let options = wakelog_archive::Options {
        endpoint: endpoint.clone(),
        access_key: Some(access_key),
        secret_key: Some(secret_key),
        path_style: *path_style,
        prefix: prefix.clone(),
        ..wakelog_archive::Options::new(region, bucket)
    };
    ObjectStore::new(options).map(Some).map_err(archive_error)
}

/// The archive of the engines in this process.
pub(crate) fn embedded(engines: &Engines) -> Result<ObjectStore, Error> {
    let options = engines
        .archive()
        .ok_or_else(|| Error::failed("the embedded archive has no address"))?;
    ObjectStore::new(options).map_err(archive_error)
}

/// Says so unless the bucket is there and can be written to.
pub(crate) async fn check(objects: &ObjectStore) -> Result<(), Error> {
    match objects.check().await.map_err(archive_error)? {
        BucketState::Ready => {}
        other => return Err(unusable(objects, &other)),
    }
    match objects.check_write().await.map_err(archive_error)? {
        BucketState::Ready => Ok(()),
        // The keys are good: what they were refused is the writing.
        BucketState::Denied { reason } => Err(unusable(objects, &BucketState::ReadOnly { reason })),
        other => Err(unusable(objects, &other)),
    }
}

/// The same for who only reads. A store that is away is no reason not to start: most bodies need nothing of it, and those that do
/// are an error until it is back. One that answers, and lacks the bucket or refuses the keys, is another matter.
pub(crate) async fn check_for_reading(objects: &ObjectStore) -> Result<(), Error> {
    match objects.check().await.map_err(archive_error)? {
        BucketState::Ready => Ok(()),
        away @ BucketState::Unreachable { .. } => {
            let Error { message, hint, .. } = unusable(objects, &away);
            tracing::warn!(
                hint,
                "{message}; bodies that need the archive are errors until it answers"
            );
            Ok(())
        }
        other => Err(unusable(objects, &other)),
    }
}

/// Says so unless the bucket is the one that holds the states of this database.
pub(crate) async fn check_bucket(objects: &ObjectStore, store: &Store, topic: &str) -> Result<(), Error> {
    use wakelog_archiver::Error as Checking;
    match wakelog_archiver::check_bucket(store, objects, topic).await {
        Ok(()) => Ok(()),
        Err(Checking::Archive(error)) => Err(archive_error(error)),
        Err(Checking::Store(error)) => Err(store_error(error)),
        Err(error) => Err(Error::dependency(with_sources(&error)).or_hint(OTHER_BUCKET_HINT)),
    }
}

const OTHER_BUCKET_HINT: &str = "are --s3-endpoint, --s3-bucket and --s3-prefix right? An archive that moves takes all of its objects \
     along; where they are lost, `wakelog segments begin-anew` archives again what is still there";

/// Says so if the bucket is the archive of another log: what is written down of one would be taken for the other's, and a rebuild
/// of either would lack something.
pub(crate) async fn check_log(objects: &ObjectStore, reader: &LogReader, topic: &str) -> Result<(), Error> {
    match misfit(objects, reader, topic).await? {
        Some(misfit) => Err(Error::dependency(misfit).or_hint(OTHER_LOG_HINT)),
        None => Ok(()),
    }
}

/// What to do about a bucket that belongs to another log.
pub(crate) const OTHER_LOG_HINT: &str = "are --topic, --brokers and --s3-bucket right? A topic that was made anew needs a bucket, or a prefix, of its own";

/// What is wrong with the bucket, in words, if it is the archive of another log.
pub(crate) async fn misfit(
    objects: &ObjectStore,
    reader: &LogReader,
    topic: &str,
) -> Result<Option<String>, Error> {
    use wakelog_persister::Error as Comparing;
    match archive_fits(objects, reader, topic).await {
        Ok(misfit) => Ok(misfit.map(|misfit| format!("the bucket is the archive of another log: {misfit}"))),
        // The archiver itself writes it anew.
        Err(error @ Comparing::Coverage { .. }) => {
            tracing::warn!(%error, "whether the bucket is the archive of this log is not known");
            Ok(None)
        }
        Err(Comparing::Archive(error)) => Err(archive_error(error)),
        Err(Comparing::Stream(error)) => Err(stream_error(error)),
        Err(error) => Err(service_error("archiver", &error)),
    }
}

/// Why a bucket can't be used, with what to do about it.
pub(crate) fn unusable(objects: &ObjectStore, state: &BucketState) -> Error {
    let options = objects.options();
    let bucket = &options.bucket;
    let place = options.endpoint.as_deref().unwrap_or("Amazon S3");
    let (message, hint) = match state {
        BucketState::Ready => (
            format!("bucket {bucket} of {place} can be used"),
            "there is nothing to do",
        ),
        BucketState::Absent => (
            format!("there is no such bucket: {bucket} of {place}"),
            "is --s3-bucket right? Wakelog creates no bucket",
        ),
        BucketState::Denied { reason } => (
            format!("the object store {place} refuses bucket {bucket}: {reason}"),
            "are the keys right, and may they read, write, list and delete in the bucket?",
        ),
        BucketState::ReadOnly { reason } => (
            format!("the object store {place} takes no writes into bucket {bucket}: {reason}"),
            "let the bucket, and the keys, take writes; history stays in the database until they do",
        ),
        BucketState::Unreachable { reason } => (
            format!("the object store {place} can't be reached: {reason}"),
            "is it running, and is --s3-endpoint right, with its http or https?",
        ),
    };
    Error::dependency(message).or_hint(hint)
}

/// The archive's error, with what to do about it.
pub(crate) fn archive_error(error: wakelog_archive::Error) -> Error {
    use wakelog_archive::Failure;
    let message = with_sources(&error);
    if matches!(error, wakelog_archive::Error::Configuration { .. }) {
        return Error::usage(message).or_hint("`wakelog config` shows what is set");
    }
    let hint = match error.failure() {
        Some(Failure::BucketNotFound) => "does the bucket exist? Wakelog creates none",
        Some(Failure::Denied) => "may these keys read, write, list and delete in the bucket?",
        Some(Failure::ClockSkew) => "set the clock of this machine right, or that of the object store",
        Some(Failure::Unavailable) => "is the object store running, and is --s3-endpoint right?",
        _ => "`wakelog doctor` looks at every dependency",
    };
    Error::dependency(message).or_hint(hint)
}

/// The archiver's options as the settings have them.
pub(crate) fn options(
    s3: &S3Settings,
    topic: &str,
    share: wakelog_archiver::Share,
    retention: Option<Duration>,
) -> wakelog_archiver::Options {
    wakelog_archiver::Options {
        valve_bytes: s3.valve_bytes,
        resweep_after: s3.resweep_after,
        spool_folder: s3.spool_dir.clone(),
        retention,
        ..wakelog_archiver::Options::new(topic, share)
    }
}

/// Runs an archiver, again whenever it ends. On a bucket that is not the one of this database, or of this log, it does not run, and
/// says so until that is mended.
pub(crate) async fn archiver(
    options: wakelog_archiver::Options,
    store: Store,
    objects: ObjectStore,
    log: LogReader,
    health: Health,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let seen = health.clone();
    supervise("archiver", health, shutdown, move |stop| {
        let service = wakelog_archiver::Service::new(options.clone(), store.clone(), objects.clone());
        let seen = seen.clone();
        let (topic, store, objects, log) =
            (options.topic.clone(), store.clone(), objects.clone(), log.clone());
        async move {
            check_bucket(&objects, &store, &topic).await?;
            check_log(&objects, &log, &topic).await?;
            let service = service.map_err(|error| service_error("archiver", &error))?;
            seen.set_archiver(service.status());
            service
                .run(stop)
                .await
                .map_err(|error| service_error("archiver", &error))
        }
    })
    .await
}
