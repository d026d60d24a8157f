//! When the transcript topic may be created.

use wakelog_store::Store;
use wakelog_stream::{TopicReport, describe_topic, ensure_topic};

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

/// Finds the topic, or creates it: but not where the database has folded one of this name. An empty topic in its place would
/// take entries that nobody folds (acked-is-durable).
pub(crate) async fn find_or_create_topic(
    store: &Store,
    options: &wakelog_stream::Options,
) -> Result<TopicReport, Error> {
    // Sessions of two topics would stand in one table, each folded by a persister that knows nothing of the other log.
    if let Some(other) = other_topic(store, &options.topic).await? {
        return Err(Error::dependency(other).or_hint(OTHER_TOPIC_HINT));
    }
    if describe_topic(options).await.map_err(stream_error)?.is_none() {
        let folded = folded_records(store, &options.topic).await?;
        if folded > 0 {
            return Err(Error::dependency(gone(&options.topic, folded)).or_hint(GONE_HINT));
        }
    }
    ensure_topic(options).await.map_err(stream_error)
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
