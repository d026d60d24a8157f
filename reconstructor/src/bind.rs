//! Binding a lifetime (DESIGN 4 "Binding is a record, not a row"): look up, decide, raise, publish, wait.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wakelog_model::{LifetimeId, SessionId, WriterNonce};
use wakelog_proto::v1::{LifetimeBound, session_record::Record};
use wakelog_store::{LifetimeRow, SessionRow};

use crate::bind_decision::{Decision, Place, SessionNow, Verdict, decide, verdict};
use crate::core::{Core, known};
use crate::poll::Poll;
use crate::publish::Applied;
use crate::{Error, failpoint, metrics};

/// How long after the raise a bind may be published. Together with the message time-out it stays below the time after which
/// ingest lets a raised generation lapse (10 s).
const PUBLISH_AFTER_RAISE: Duration = Duration::from_secs(4);

/// Over what a caller may bind.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Claim {
    /// Over whatever is current.
    OverCurrent,
    /// Over nothing: the session is new.
    First,
    /// Over this lifetime.
    After(LifetimeId),
}

/// A bind to make, validated.
#[derive(Debug, Clone)]
pub(crate) struct BindRequest {
    pub(crate) session: SessionId,
    pub(crate) account: String,
    pub(crate) request_id: String,
    /// The writer that asks for itself.
    pub(crate) nonce: Option<WriterNonce>,
    pub(crate) claim: Claim,
    /// Whether the session must hold a complete entry.
    pub(crate) needs_entries: bool,
}

/// A lifetime that was current when it was last read.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) session: SessionRow,
    pub(crate) lifetime: LifetimeRow,
}

impl Core {
    /// Binds a lifetime, or finds the one that this request has bound.
    ///
    /// The bind is a record, so a death anywhere in here leaves one of three things: nothing, a record that is yet to be
    /// folded, or a bound lifetime. The same request again finds out which, as it first waits for the persister to pass
    /// the partition's end.
    pub(crate) async fn bind(
        &self,
        request: &BindRequest,
        abandoned: &CancellationToken,
    ) -> Result<Bound, Error> {
        let partition = self.visible(request.session, &request.account).await?.partition;
        self.pass_end(partition, abandoned).await?;
        // The row before the lookup: if this request's bind is applied in between, the lookup finds it, and if it is
        // applied later, it has the very generation that is published below, and is a duplicate.
        let row = self.visible(request.session, &request.account).await?;
        let found = self.lifetime_of_request(request).await?;
        let known_found = found.as_ref().map(known).transpose()?;
        let now = SessionNow {
            generation: row.generation,
            last_entry_seq: row.last_entry_seq,
        };
        let place = self.place(request).await?;
        match (
            decide(known_found.as_ref(), now, place, request.needs_entries),
            found,
        ) {
            (Decision::Reuse, Some(lifetime)) => {
                metrics::bind(metrics::Bind::Reused);
                Ok(Bound {
                    session: row,
                    lifetime,
                })
            }
            (Decision::Reuse, None) => Err(Error::Corrupt(
                "a lifetime to use again that was not found".to_owned(),
            )),
            (Decision::Refuse(refusal), _) => Err(refusal.into()),
            (Decision::Bind { generation }, _) => {
                self.publish_bind(request, row, generation, abandoned).await
            }
        }
    }

    async fn lifetime_of_request(&self, request: &BindRequest) -> Result<Option<LifetimeRow>, Error> {
        let by_request = self
            .store
            .lifetime_by_request(request.session, &request.request_id)
            .await?;
        match (by_request, request.nonce) {
            (None, Some(nonce)) => Ok(self.store.lifetime_by_nonce(request.session, nonce).await?),
            (by_request, _) => Ok(by_request),
        }
    }

    async fn place(&self, request: &BindRequest) -> Result<Place, Error> {
        Ok(match request.claim {
            Claim::OverCurrent => Place::OverCurrent,
            Claim::First => Place::First,
            Claim::After(lifetime) => {
                let named = self.store.lifetime_by_id(request.session, lifetime).await?;
                Place::After {
                    named: named.map(|lifetime| lifetime.generation),
                }
            }
        })
    }

    async fn publish_bind(
        &self,
        request: &BindRequest,
        row: SessionRow,
        generation: u64,
        abandoned: &CancellationToken,
    ) -> Result<Bound, Error> {
        let session = request.session;
        let lifetime_id = LifetimeId::for_bind(session, &request.request_id, generation);
        // From here on ingest gives no LOG ack to an earlier generation, so that none is given for an entry that the
        // bind is about to fence.
        let raising = Instant::now();
        self.store.raise_binding_generation(session, generation).await?;
        failpoint::reach(failpoint::AFTER_RAISE)?;
        // Whoever was frozen here must not publish a bind when the raise has lapsed.
        let is_in_time = || raising.elapsed() <= PUBLISH_AFTER_RAISE;
        if !is_in_time() {
            return Err(Error::NotInTime {
                what: "the publish of an announced bind",
                waited: PUBLISH_AFTER_RAISE,
            });
        }

        let mut poll = Poll::new("the applied bind", self.options.apply_timeout, abandoned);
        let record = Record::LifetimeBound(LifetimeBound {
            lifetime_id: lifetime_id.as_bytes().to_vec().into(),
            generation,
            request_id: request.request_id.clone(),
        });
        let published = self
            .publish_while(session, row.partition, record, is_in_time)
            .await?;
        failpoint::reach(failpoint::AFTER_BIND_PUBLISH)?;

        let applied = self
            .wait_applied(row.partition, published, &mut poll, || {
                self.look_at_bind(request, lifetime_id, generation)
            })
            .await?;
        failpoint::reach(failpoint::AFTER_BIND_APPLIED)?;
        metrics::applied(poll.waited());
        match applied {
            Applied::Seen(Seen::Won(lifetime)) => {
                metrics::bind(metrics::Bind::Won);
                tracing::info!(%session, generation, base = lifetime.base, "lifetime bound");
                Ok(Bound {
                    session: row,
                    lifetime,
                })
            }
            Applied::Seen(Seen::Lost { current }) => {
                metrics::bind(metrics::Bind::Lost);
                tracing::info!(%session, generation, current, "bind lost");
                Err(Error::BindLost { current })
            }
            Applied::Nothing => Err(Error::Corrupt(format!(
                "the bind of generation {generation} was folded, and is neither applied nor lost"
            ))),
        }
    }

    /// What has become of a published bind; `None`: nothing yet. Authorises again: the session may have been erased.
    async fn look_at_bind(
        &self,
        request: &BindRequest,
        lifetime_id: LifetimeId,
        generation: u64,
    ) -> Result<Option<Seen>, Error> {
        let row = self.visible(request.session, &request.account).await?;
        if row.generation < generation {
            return Ok(None);
        }
        let lifetime = self.store.lifetime_by_id(request.session, lifetime_id).await?;
        let known_lifetime = lifetime.as_ref().map(known).transpose()?;
        match (
            verdict(known_lifetime.as_ref(), row.generation, generation),
            lifetime,
        ) {
            (Verdict::Won, Some(lifetime)) => Ok(Some(Seen::Won(lifetime))),
            (Verdict::Lost { current }, _) => Ok(Some(Seen::Lost { current })),
            (Verdict::Refuse(refusal), _) => Err(refusal.into()),
            (Verdict::Open | Verdict::Won, _) => Ok(None),
        }
    }
}

enum Seen {
    Won(LifetimeRow),
    Lost { current: u64 },
}
