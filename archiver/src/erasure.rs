//! Deleting what the archive holds of an erased session.

use bytes::Bytes;
use wakelog_archive::{ObjectName, session_prefix};
use wakelog_model::SessionId;

use crate::shared::Shared;
use crate::{Error, failpoint, telemetry};

/// What the object that marks an erased session holds. Its name says everything.
const MARK: &[u8] = b"erased\n";

impl Shared {
    /// Marks the session as erased, then deletes every object of it. The mark first: a rebuild that finds the session's state
    /// must find the mark too. What another archiver had on its way is deleted by a later sweep.
    pub(crate) async fn erase(&self, session: SessionId) -> Result<(), Error> {
        // Only the database says who is erased: a record of the topic may have been refused.
        let tails = self.store.hot_tails(&[session]).await?;
        if !tails.iter().any(|tail| tail.erased) {
            return Ok(());
        }
        let mark = ObjectName::Erased(session).to_string();
        self.objects.put_bytes(&mark, Bytes::from_static(MARK)).await?;
        failpoint::reach(failpoint::BEFORE_SWEEP)?;
        let objects = self.objects.delete_prefix(&session_prefix(session)).await?;
        failpoint::reach(failpoint::AFTER_SWEEP)?;
        self.store.record_sweep(session).await?;
        telemetry::swept(objects);
        tracing::info!(%session, objects, "deleted the objects of an erased session");
        Ok(())
    }
}
