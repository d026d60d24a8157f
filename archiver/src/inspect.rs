//! Looks at the archive as a whole, for an administrator: whether every segment of the manifest is there and is what it should
//! be, whether each session has all of its entries, and which objects nobody records.
//!
//! | module | decision |
//! |---|---|
//! | [`report`] | what it says |
//! | `segments` | what of the manifest is missing or damaged |
//! | `holes` | which entries are neither in a segment nor in the hot tail |
//! | `listing` | the objects that a listing finds, a page at a time |
//! | `orphans` | which of them nothing records |
//! | `deletion` | which of those may go, and how |
//! | `kept` | which states of a session are not to go; pure |
//!
//! Archivers may go on meanwhile: what they record, erase or put while this looks is no difference.

mod deletion;
mod holes;
mod kept;
mod listing;
mod orphans;
pub mod report;
mod segments;

use std::time::Duration;

use wakelog_archive::ObjectStore;
use wakelog_model::SessionId;
use wakelog_store::Store;

use crate::Error;
pub use report::{Finding, InspectProgress, InspectReport, What};

/// What is looked at, and what is done about it.
#[derive(Debug, Clone, Copy)]
pub struct Inspection<'a> {
    /// The database with the manifest.
    pub store: &'a Store,
    /// The objects.
    pub objects: &'a ObjectStore,
    /// The session; `None`: all of them.
    pub session: Option<SessionId>,
    /// Orphans that are older than this are deleted; `None`: none are.
    ///
    /// Longer than an archiver may take from the PUT of a state to its record: a state that was listed and is recorded
    /// while it is deleted would be missing. Segments are condemned first, so they can't be.
    pub delete_older_than: Option<Duration>,
}

/// Looks at everything, segments first. `progress` is called for each object.
///
/// What is found is no error. [`Error::Store`] and [`Error::Archive`] if one of them can't be asked: then nothing is said, and
/// some orphans may be deleted.
pub async fn inspect(
    inspection: Inspection<'_>,
    mut progress: impl FnMut(InspectProgress),
) -> Result<InspectReport, Error> {
    let mut report = InspectReport::default();
    inspection.check_segments(&mut report, &mut progress).await?;
    inspection.find_holes(&mut report).await?;
    if inspection.delete_older_than.is_some() {
        inspection.forget_left_behind().await?;
    }
    inspection.find_orphans(&mut report, &mut progress).await?;
    Ok(report)
}
