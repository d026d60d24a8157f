//! Which orphans may go, and how: condemned, deleted, forgotten.
//!
//! An orphan goes only if nothing is lost with it (archived-is-complete): its session must be in the database, and every entry
//! of it in a segment of the manifest. The hot tail does not count: after a rebuild from the topic it holds what the states in the
//! bucket need from an orphan. After the loss of a database all objects are orphans, and what it is built again from.

use std::time::{Duration, SystemTime};

use wakelog_archive::Failure;
use wakelog_model::SessionId;

use super::Inspection;
use super::listing::ListedSegment;
use super::orphans::is_older;
use super::report::What;
use crate::Error;
use crate::uncovered::{EntryRange, uncovered};

/// How long a key stays condemned by whoever died before it could forget it: longer than anybody may take to delete an object,
/// with all retries.
const LEFT_BEHIND: Duration = Duration::from_secs(15 * 60);

/// Such keys that one inspection looks at, at most.
const MOST_LEFT_BEHIND: u32 = 1_000;

/// Segments that are looked at to find out whether an orphan is needed. If there are more, it counts as needed.
const SEGMENTS: u32 = 1_000;

/// How much longer than a request a key stays condemned if a request to delete it may still be on its way.
const GRACE: Duration = Duration::from_secs(1);

impl Inspection<'_> {
    /// Deletes an orphaned segment if it may go, and says what became of it.
    pub(super) async fn delete_segment(&self, segment: &ListedSegment) -> Result<(What, String), Error> {
        let keep = |why: &str| Ok((What::Orphan, why.to_owned()));
        let Some(age) = self.delete_older_than else {
            return keep("nothing records it");
        };
        if !is_older(segment.last_modified, age) {
            return keep("it is too new to be deleted");
        }
        let range = (segment.key.min_entry_seq, segment.key.max_entry_seq);
        if let Some(reason) = self.needed(segment.key.session, range).await? {
            return keep(reason);
        }
        let key = &segment.name;
        if !self.store.condemn_object(segment.key.session, key, age).await? {
            return keep("an archiver has announced or recorded it meanwhile");
        }
        let before = self.objects.requests();
        self.objects.delete(key).await?;
        if self.objects.requests() > before + 1 {
            // One that was given up may still arrive, and must find no object that was put anew.
            tokio::time::sleep(self.objects.options().attempt_timeout + GRACE).await;
        }
        self.store.forget_condemned(key).await?;
        Ok((What::Deleted, "nothing recorded it".to_owned()))
    }

    /// Deletes a state that nothing records, or its parts.
    pub(super) async fn delete_state(
        &self,
        session: SessionId,
        name: &str,
        last_modified: Option<SystemTime>,
    ) -> Result<(What, String), Error> {
        let keep = |why: &str| Ok((What::Orphan, why.to_owned()));
        let Some(age) = self.delete_older_than else {
            return keep("nothing records it");
        };
        if !is_older(last_modified, age) {
            return keep("it is too new to be deleted");
        }
        if self.store.hot_tails(&[session]).await?.is_empty() {
            return keep(NO_SESSION);
        }
        self.objects.delete(name).await?;
        Ok((
            What::Deleted,
            "nothing recorded it, and there is a newer one".to_owned(),
        ))
    }

    /// Lets keys be staged again that somebody condemned who died before the end. Only where the object is gone: one that is
    /// there is an orphan, and is found as such.
    pub(super) async fn forget_left_behind(&self) -> Result<(), Error> {
        for key in self
            .store
            .condemned_objects(LEFT_BEHIND, MOST_LEFT_BEHIND)
            .await?
        {
            match self.objects.head(&key).await {
                Ok(_) => {}
                Err(error) if error.failure() == Some(Failure::NotFound) => {
                    self.store.forget_condemned(&key).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Why the entries of an orphan may be nowhere else; `None`: they are. What is erased nobody needs.
    async fn needed(&self, session: SessionId, range: EntryRange) -> Result<Option<&'static str>, Error> {
        let tails = self.store.hot_tails(&[session]).await?;
        let Some(tail) = tails.first() else {
            return Ok(Some(NO_SESSION));
        };
        if tail.erased {
            return Ok(None);
        }
        let (first, last) = range;
        let segments = self
            .store
            .segments_overlapping(session, first, last, SEGMENTS)
            .await?;
        let mut held: Vec<EntryRange> = segments
            .iter()
            .map(|segment| (segment.min_entry_seq, segment.max_entry_seq))
            .collect();
        held.sort_unstable();
        match uncovered(&[range], &held).is_empty() {
            true => Ok(None),
            false => Ok(Some("no other segment has all of its entries")),
        }
    }
}

const NO_SESSION: &str = "the database does not know its session";
