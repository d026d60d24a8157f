//! Erasing a session: publish, wait until applied. Its sub-sessions go with it, which the persister sees to; the objects in
//! the archive are the archiver's to delete.

use tokio_util::sync::CancellationToken;
use wakelog_model::SessionId;
use wakelog_proto::v1::{SessionErased, session_record::Record};
use wakelog_store::ErasureStanding;

use crate::core::Core;
use crate::poll::Poll;
use crate::publish::Applied;
use crate::{Error, metrics};

impl Core {
    /// Erases the session. One that is erased already is no error for its owner, whom the tombstone still names; for
    /// everybody else it is not there.
    pub(crate) async fn erase(
        &self,
        session: SessionId,
        account: &str,
        abandoned: &CancellationToken,
    ) -> Result<(), Error> {
        let standing = self.owned(session, account).await?;
        if standing.erased {
            return Ok(());
        }
        let partition = standing.partition;
        let mut poll = Poll::new("the erased session", self.options.apply_timeout, abandoned);
        let published = self
            .publish(session, partition, Record::SessionErased(SessionErased {}))
            .await?;
        let applied = self
            .wait_applied(partition, published, &mut poll, || async {
                Ok(self.owned(session, account).await?.erased.then_some(()))
            })
            .await?;
        metrics::applied(poll.waited());
        if applied == Applied::Nothing {
            return Err(Error::Corrupt(format!(
                "the erasure of session {session} was folded, and it is not erased"
            )));
        }
        tracing::info!(%session, "session erased");
        Ok(())
    }

    /// Authorises: whoever may not see the session learns nothing, whoever may but does not own it is refused.
    async fn owned(&self, session: SessionId, account: &str) -> Result<ErasureStanding, Error> {
        let standing = self
            .store
            .erasure_standing(session, account)
            .await?
            .ok_or(Error::SessionNotFound)?;
        if !standing.is_owner {
            return Err(Error::NotOwner);
        }
        Ok(standing)
    }
}
