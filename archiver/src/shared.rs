//! What all work of one archiver has in common.

use wakelog_archive::ObjectStore;
use wakelog_store::Store;

use crate::options::Options;
use crate::share::Partitions;

/// What all work of one archiver has in common.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) store: Store,
    pub(crate) objects: ObjectStore,
    pub(crate) partitions: Partitions,
}
