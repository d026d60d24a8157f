//! When the transcript topic may be created.

use wakelog_store::Store;
use wakelog_stream::{TopicReport, describe_topic, ensure_topic};

use super::{store_error, stream_error};
use crate::exit::Error;

/// What to do about a topic that has gone.
pub(crate) const GONE_HINT: &str =
    "was it deleted, or is --brokers another cluster? Put the log back, or start on a new database";

/// Finds the topic, or creates it: but not where the database has folded one of this name. An empty topic in its place would
/// take entries that nobody folds (acked-is-durable).
pub(crate) async fn find_or_create_topic(
    store: &Store,
    options: &wakelog_stream::Options,
) -> Result<TopicReport, Error> {
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

/// What is wrong with a topic that has gone, in words.
pub(crate) fn gone(topic: &str, folded: i64) -> String {
    format!("topic {topic} does not exist, but the database has folded {folded} records of it")
}
