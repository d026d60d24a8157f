//! Lifetimes: attach, stop, renew.

use tonic::{Request, Response, Status};
use wakelog_proto::v1::{
    AttachWriterRequest, AttachWriterResponse, RenewLifetimeTokenRequest, RenewLifetimeTokenResponse,
    StopAgentSessionRequest, StopAgentSessionResponse,
};

use super::Sessions;
use crate::bind::{BindRequest, Claim};
use crate::{Error, validate};

impl Sessions {
    pub(super) async fn attach(
        &self,
        request: Request<AttachWriterRequest>,
    ) -> Result<Response<AttachWriterResponse>, Status> {
        let (account, request) = self.authenticate(request)?;
        self.core
            .unary(async move |core, abandoned| {
                let bind = attachment(account, &request)?;
                let bound = core.bind(&bind, &abandoned).await?;
                Ok(AttachWriterResponse {
                    lifetime: Some(core.grant(&bound, &bind.account)),
                })
            })
            .await
    }

    pub(super) async fn stop(
        &self,
        request: Request<StopAgentSessionRequest>,
    ) -> Result<Response<StopAgentSessionResponse>, Status> {
        let (account, request) = self.authenticate(request)?;
        self.core
            .unary(async move |core, abandoned| {
                let session = validate::session_id(&request.session_id)?;
                let lifetime = validate::lifetime_id(&request.lifetime_id)?;
                let last_entry_seq = core.stop(session, &account, lifetime, &abandoned).await?;
                Ok(StopAgentSessionResponse { last_entry_seq })
            })
            .await
    }

    pub(super) async fn renew(
        &self,
        request: Request<RenewLifetimeTokenRequest>,
    ) -> Result<Response<RenewLifetimeTokenResponse>, Status> {
        let claims = self
            .core
            .claims_to_renew(request.metadata())
            .map_err(Error::into_status)?;
        self.core
            .unary(async move |core, _| {
                let lifetime = core.renew(&claims).await?;
                Ok(RenewLifetimeTokenResponse {
                    lifetime: Some(lifetime),
                })
            })
            .await
    }
}

/// The bind that a writer asks for. Its request id is its nonce: the same attachment again is the same bind.
fn attachment(account: String, request: &AttachWriterRequest) -> Result<BindRequest, Error> {
    let session = validate::session_id(&request.session_id)?;
    let nonce = validate::writer_nonce(&request.writer_nonce)?;
    let claim = match (
        request.take_over,
        validate::lifetime_id(&request.last_lifetime_id)?,
    ) {
        (true, _) => Claim::OverCurrent,
        (false, Some(lifetime)) => Claim::After(lifetime),
        (false, None) => Claim::First,
    };
    Ok(BindRequest {
        session,
        account,
        request_id: nonce.to_string(),
        nonce: Some(nonce),
        claim,
        needs_entries: false,
    })
}

#[cfg(test)]
mod tests {
    use wakelog_model::LifetimeId;

    use super::*;
    use crate::fixtures::session;

    fn request() -> AttachWriterRequest {
        AttachWriterRequest {
            session_id: session().to_string(),
            writer_nonce: vec![7; 16].into(),
            ..AttachWriterRequest::default()
        }
    }

    fn attach(request: &AttachWriterRequest) -> Result<BindRequest, Error> {
        attachment("ann".to_owned(), request)
    }

    #[test]
    fn a_writer_binds_by_its_nonce() {
        let bind = attach(&request()).unwrap();
        assert_eq!(bind.request_id, "07".repeat(16));
        assert!(!bind.needs_entries);
        assert!(matches!(bind.claim, Claim::First));
    }

    #[test]
    fn a_writer_that_names_a_lifetime_binds_after_it() {
        let mut request = request();
        request.last_lifetime_id = vec![9; 16].into();
        assert!(
            matches!(attach(&request).unwrap().claim, Claim::After(lifetime) if lifetime == LifetimeId([9; 16]))
        );
    }

    #[test]
    fn an_explicit_take_over_outranks_a_named_lifetime() {
        let mut request = request();
        request.last_lifetime_id = vec![9; 16].into();
        request.take_over = true;
        assert!(matches!(attach(&request).unwrap().claim, Claim::OverCurrent));
    }

    #[test]
    fn ids_of_another_length_are_refused() {
        for length in [0, 8, 17] {
            let mut broken = request();
            broken.writer_nonce = vec![1; length].into();
            assert!(matches!(attach(&broken), Err(Error::Malformed(_))), "{length}");
        }
        let mut broken = request();
        broken.last_lifetime_id = vec![1; 15].into();
        assert!(matches!(attach(&broken), Err(Error::Malformed(_))));
    }
}
