//! Deleting what the archive holds of an erased session.

use prost::Message as _;
use wakelog_archive::{ERASED_FORMAT, ObjectName, session_prefix};
use wakelog_model::SessionId;
use wakelog_proto::v1::ErasedSession;

use crate::shared::Shared;
use crate::{Error, failpoint, telemetry};

impl Shared {
    /// Marks the session as erased, then deletes every object of it. The mark first: a rebuild that finds the session's state
    /// must find the mark too. What another archiver had on its way is deleted by a later sweep.
    pub(crate) async fn erase(&self, session: SessionId) -> Result<(), Error> {
        // Only the database says who is erased: a record of the topic may have been refused.
        let tails = self.store.hot_tails(&[session]).await?;
        let Some(tail) = tails.iter().find(|tail| tail.erased) else {
            return Ok(());
        };
        let mark = ErasedSession {
            format: ERASED_FORMAT,
            session_id: session.to_string(),
            partition: tail.partition,
        };
        let name = ObjectName::Erased(session).to_string();
        self.objects.put_bytes(&name, mark.encode_to_vec().into()).await?;
        failpoint::reach(failpoint::BEFORE_SWEEP)?;
        let objects = self.objects.delete_prefix(&session_prefix(session)).await?;
        failpoint::reach(failpoint::AFTER_SWEEP)?;
        self.store.record_sweep(session).await?;
        telemetry::swept(objects);
        tracing::info!(%session, objects, "deleted the objects of an erased session");
        Ok(())
    }
}
