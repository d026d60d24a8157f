//! When the transcript topic may be created, and when it may be used as it is.

use std::time::Duration;

use wakelog_store::Store;
use wakelog_stream::{Flaw, TopicReport, check_creatable, describe_topic, ensure_topic};

use super::{store_error, stream_error};
use crate::exit::Error;

/// What to do about a database that belongs to another topic.
pub(crate) const OTHER_TOPIC_HINT: &str = "is --topic right? A database of its own for each topic";

/// What to do about a topic that has gone.
pub(crate) const GONE_HINT: &str =
    "was it deleted, or is --brokers another cluster? Put the log back, or start on a new database";

/// What to do about a database that is not built yet.
pub(crate) const UNFINISHED_HINT: &str =
    "run the same `wakelog replay` again: it goes on where it stopped, or says what is missing";

/// What to do about a topic that has fewer partitions than it had.
pub(crate) const FEWER_PARTITIONS_HINT: &str = "was it deleted and made again with fewer? Put the old log back, or start on a new database with a topic of another name";

/// With less than this an outage of an hour loses records that nobody has folded or archived.
const SHORT_RETENTION: Duration = Duration::from_secs(60 * 60);

/// Looks at the topic, or whether it could be created, and changes nothing: `Some` if it is there and can be used.
pub(crate) async fn look_at_topic(
    store: &Store,
    options: &wakelog_stream::Options,
) -> Result<Option<TopicReport>, Error> {
    // Sessions of two topics would stand in one table, each folded by a persister that knows nothing of the other log.
    if let Some(other) = other_topic(store, &options.topic).await? {
        return Err(Error::dependency(other).or_hint(OTHER_TOPIC_HINT));
    }
    match look_at_log(options).await? {
        Some(report) => {
            if let Some(fewer) = fewer_partitions(store, &options.topic, report.partitions).await? {
                return Err(Error::dependency(fewer).or_hint(FEWER_PARTITIONS_HINT));
            }
            Ok(Some(report))
        }
        None => {
            let folded = folded_records(store, &options.topic).await?;
            match folded > 0 {
                true => Err(Error::dependency(gone(&options.topic, folded)).or_hint(GONE_HINT)),
                false => Ok(None),
            }
        }
    }
}

/// The same where the database has no tables yet, so that it has folded nothing.
pub(crate) async fn look_at_log(options: &wakelog_stream::Options) -> Result<Option<TopicReport>, Error> {
    let Some(report) = describe_topic(options).await.map_err(stream_error)? else {
        check_creatable(options).await.map_err(stream_error)?;
        return Ok(None);
    };
    check_flaws(&options.topic, &report)?;
    Ok(Some(report))
}

/// Finds the topic, or creates it: but not where the database has folded one of this name. An empty topic in its place would
/// take entries that nobody folds (acked-is-durable).
pub(crate) async fn find_or_create_topic(
    store: &Store,
    options: &wakelog_stream::Options,
) -> Result<TopicReport, Error> {
    if let Some(report) = look_at_topic(store, options).await? {
        return Ok(report);
    }
    let report = ensure_topic(options).await.map_err(stream_error)?;
    check_flaws(&options.topic, &report)?;
    Ok(report)
}

/// Refuses a topic that does not keep what it is asked to keep.
fn check_flaws(topic: &str, report: &TopicReport) -> Result<(), Error> {
    let broken: Vec<&Flaw> = report
        .flaws
        .iter()
        .filter(|flaw| flaw.breaks_durability)
        .collect();
    let Some(first) = broken.first() else {
        return Ok(());
    };
    let all: Vec<&str> = broken.iter().map(|flaw| flaw.what.as_str()).collect();
    Err(Error::dependency(format!("topic {topic}: {}", all.join("; "))).or_hint(first.mend))
}

/// Says aloud what weakens a topic that is used all the same.
pub(crate) fn warn_of_flaws(topic: &str, report: &TopicReport) {
    for flaw in &report.flaws {
        tracing::warn!(topic, hint = flaw.mend, "topic setting: {}", flaw.what);
    }
}

/// What the topic's retention costs, in words, and what to do about it.
pub(crate) fn short_retention(
    retention: Option<Duration>,
    has_archive: bool,
) -> Option<(String, &'static str)> {
    let retention = retention?;
    let milliseconds = retention.as_millis();
    if !has_archive {
        return Some((
            format!(
                "retention.ms is {milliseconds} and there is no archive: if the database is lost, what the topic has dropped by \
                 then can't be built again"
            ),
            "name a bucket with --s3-bucket, or set the topic's retention.ms to -1",
        ));
    }
    (retention < SHORT_RETENTION).then(|| {
        (
            format!(
                "retention.ms is {milliseconds}: a persister that is away for as long loses records, and the archiver has half of \
                 it to archive every session"
            ),
            "set the topic's retention.ms to the longest outage that is to do no harm, and twice as much again",
        )
    })
}

/// What is wrong with the topic, in words, if the database has folded partitions that it does not have.
pub(crate) async fn fewer_partitions(
    store: &Store,
    topic: &str,
    partitions: i32,
) -> Result<Option<String>, Error> {
    let progress = store.progress_of_topic(topic).await.map_err(store_error)?;
    let folded = progress.iter().filter(|partition| partition.next_offset > 0);
    let highest = folded.map(|partition| partition.partition).max();
    Ok(highest.filter(|highest| *highest >= partitions).map(|highest| {
        format!(
            "topic {topic} has {partitions} partitions, but the database has folded records of its partition {highest}"
        )
    }))
}

/// How many records of a topic of this name the database has folded.
pub(crate) async fn folded_records(store: &Store, topic: &str) -> Result<i64, Error> {
    let progress = store.progress_of_topic(topic).await.map_err(store_error)?;
    Ok(progress.iter().map(|partition| partition.next_offset).sum())
}

/// What is wrong with the database, in words, if it has folded records of another topic.
pub(crate) async fn other_topic(store: &Store, topic: &str) -> Result<Option<String>, Error> {
    let folded = store.folded_topics().await.map_err(store_error)?;
    let other = folded.into_iter().find(|folded| folded != topic);
    Ok(other
        .map(|other| format!("the database has folded topic {other}, it can't take topic {topic} as well")))
}

/// What is wrong with the database, in words, if a replay has not built it to the end. Sessions may be missing in it, and what a
/// service adds could take their place.
pub(crate) async fn unfinished_rebuild(store: &Store) -> Result<Option<String>, Error> {
    let rebuild = store.rebuild().await.map_err(store_error)?;
    let unfinished = rebuild.filter(|rebuild| !rebuild.finished);
    Ok(unfinished.map(|rebuild| {
        format!(
            "the database is being built from topic {} by a replay that has not finished",
            rebuild.topic
        )
    }))
}

/// What is wrong with a topic that has gone, in words.
pub(crate) fn gone(topic: &str, folded: i64) -> String {
    format!("topic {topic} does not exist, but the database has folded {folded} records of it")
}
