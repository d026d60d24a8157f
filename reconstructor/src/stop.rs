//! Ending a lifetime.

use tokio_util::sync::CancellationToken;
use wakelog_model::{LifetimeId, SessionId};
use wakelog_proto::v1::{LifetimeEnded, session_record::Record};
use wakelog_store::LifetimeRow;

use crate::bind_decision::{Standing, standing};
use crate::core::{Core, known};
use crate::poll::Poll;
use crate::publish::Applied;
use crate::{Error, metrics};

impl Core {
    /// Ends the lifetime, or the current one if none is named, and returns the session's last complete entry. A lifetime
    /// that has ended already is no error; one that is superseded while its end is under way has ended too.
    pub(crate) async fn stop(
        &self,
        session: SessionId,
        account: &str,
        named: Option<LifetimeId>,
        abandoned: &CancellationToken,
    ) -> Result<u64, Error> {
        let partition = self.visible(session, account).await?.partition;
        self.pass_end(partition, abandoned).await?;
        let row = self.visible(session, account).await?;
        let lifetime = self
            .lifetime_to_stop(session, named)
            .await?
            .ok_or(Error::Superseded {
                current: row.generation,
            })?;
        match standing(&known(&lifetime)?) {
            Standing::Active => {}
            Standing::Ended => return Ok(row.last_entry_seq),
            Standing::Superseded { current } => return Err(Error::Superseded { current }),
            Standing::Failed => return Err(Error::LifetimeFailed),
        }

        let mut poll = Poll::new("the ended lifetime", self.options.apply_timeout, abandoned);
        let record = Record::LifetimeEnded(LifetimeEnded {
            lifetime_id: lifetime.lifetime_id.as_bytes().to_vec().into(),
        });
        let published = self.publish(session, partition, record).await?;
        let applied = self
            .wait_applied(partition, published, &mut poll, || {
                self.look_at_end(session, lifetime.lifetime_id)
            })
            .await?;
        metrics::applied(poll.waited());
        if applied == Applied::Nothing {
            return Err(Error::Corrupt(
                "the end of a lifetime was folded, and it has not ended".to_owned(),
            ));
        }
        tracing::info!(%session, generation = lifetime.generation, "lifetime ended");
        Ok(self.visible(session, account).await?.last_entry_seq)
    }

    async fn lifetime_to_stop(
        &self,
        session: SessionId,
        named: Option<LifetimeId>,
    ) -> Result<Option<LifetimeRow>, Error> {
        match named {
            Some(lifetime) => Ok(self.store.lifetime_by_id(session, lifetime).await?),
            None => Ok(self.store.lifetimes(session, 1).await?.into_iter().next()),
        }
    }

    async fn look_at_end(&self, session: SessionId, lifetime: LifetimeId) -> Result<Option<()>, Error> {
        let row = self
            .store
            .lifetime_by_id(session, lifetime)
            .await?
            .ok_or(Error::SessionNotFound)?;
        match standing(&known(&row)?) {
            Standing::Active => Ok(None),
            Standing::Ended | Standing::Superseded { .. } => Ok(Some(())),
            Standing::Failed => Err(Error::LifetimeFailed),
        }
    }
}
