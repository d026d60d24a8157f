//! Starting a session in a container: a fresh one, or one that is resumed.

use tokio_util::sync::CancellationToken;
use wakelog_model::SessionId;
use wakelog_proto::v1::{
    LifetimeGrant, ResumeBody, SessionsResponse, StartAgentSessionRequest, sessions_response,
};

use crate::bind::{BindRequest, Bound, Claim};
use crate::body::Range;
use crate::core::Core;
use crate::export::{closing, send_body};
use crate::open::NewSession;
use crate::outlet::Outlet;
use crate::sequence::Rule;
use crate::{Error, failpoint, validate};

/// Keeps the sessions of fresh starts apart from those that were opened under the same request id.
const FRESH_START: &str = "start:";

/// A start whose lifetime is bound.
pub(crate) struct Started {
    request_id: String,
    request: StartAgentSessionRequest,
    grant: LifetimeGrant,
    bound: Bound,
    resumed: bool,
}

impl Core {
    /// Binds the lifetime of a start.
    pub(crate) async fn prepare_start(
        &self,
        account: &str,
        request: StartAgentSessionRequest,
        abandoned: &CancellationToken,
    ) -> Result<Started, Error> {
        let request_id = validate::request_id(&request.request_id)?;
        let resumed = !request.resume_session_id.is_empty();
        let (session, claim) = if resumed {
            (
                validate::session_id(&request.resume_session_id)?,
                Claim::OverCurrent,
            )
        } else {
            let new = NewSession {
                session: SessionId::for_request(account, &format!("{FRESH_START}{request_id}")),
                owner: account.to_owned(),
                labels: validate::container_label(&request.container_name)?,
                parent: None,
                subpath: String::new(),
            };
            (self.open(&new, abandoned).await?.session, Claim::First)
        };
        let bind = BindRequest {
            session,
            account: account.to_owned(),
            request_id: request_id.clone(),
            nonce: None,
            claim,
            needs_entries: resumed,
        };
        let bound = self.bind(&bind, abandoned).await?;
        if resumed && bound.lifetime.base == 0 {
            return Err(Error::SessionEmpty);
        }
        let grant = self.grant(&bound, account);
        Ok(Started {
            request_id,
            request,
            grant,
            bound,
            resumed,
        })
    }

    /// Hands out the start, and on a resume the body that its bind has fixed.
    pub(crate) async fn start(
        &self,
        started: Started,
        outlet: &Outlet<SessionsResponse>,
    ) -> Result<(), Error> {
        let Started {
            request_id,
            request,
            grant,
            bound,
            resumed,
        } = started;
        outlet
            .send(SessionsResponse {
                request_id: request_id.clone(),
                command: Some(sessions_response::Command::Start(request)),
                resume_body: None,
                lifetime: Some(grant),
            })
            .await?;
        if !resumed {
            return Ok(());
        }
        let message = |resume_body: ResumeBody| SessionsResponse {
            request_id: request_id.clone(),
            resume_body: Some(resume_body),
            ..SessionsResponse::default()
        };
        let Bound { session, lifetime } = &bound;
        let range = Range {
            session: session.session,
            first: lifetime.body_start,
            last: lifetime.base,
        };
        let reader = self.parts(range, Rule::Body);
        let close = send_body(reader, range, outlet, &message).await?;
        failpoint::reach(failpoint::BEFORE_CLOSE)?;
        self.still_current(&bound).await?;
        outlet.send(message(closing(close))).await
    }

    /// A body is closed only for the lifetime that may go on from it. One that has ended or failed meanwhile is still
    /// what its receiver holds; its next write will be told.
    async fn still_current(&self, bound: &Bound) -> Result<(), Error> {
        let Bound { session, lifetime } = bound;
        let row = self
            .store
            .lifetime_by_id(session.session, lifetime.lifetime_id)
            .await?
            .ok_or(Error::SessionNotFound)?;
        if row.current_generation != lifetime.generation {
            return Err(Error::Superseded {
                current: row.current_generation,
            });
        }
        Ok(())
    }
}
