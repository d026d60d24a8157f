//! What the tasks of one service share.

use tokio::sync::Notify;
use wakelog_store::Store;
use wakelog_stream::LogReader;

use crate::options::Options;
use crate::status::StatusHandle;
use crate::unreadable::UnreadablePartitions;

/// What the tasks of one service share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) store: Store,
    pub(crate) reader: LogReader,
    pub(crate) status: StatusHandle,
    pub(crate) unreadable: UnreadablePartitions,
    /// Tells the member that the store has lost commits of a partition whose worker has nothing to do.
    pub(crate) store_went_back: Notify,
}

impl Shared {
    pub(crate) fn topic(&self) -> &str {
        &self.options.stream.topic
    }
}
