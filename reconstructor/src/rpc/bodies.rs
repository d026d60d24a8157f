//! The streams: start, export, tail.

use tonic::{Request, Response, Status};
use wakelog_proto::v1::{
    ExportSessionRequest, ExportSessionResponse, SessionsResponse, StartAgentSessionRequest,
    TailSessionRequest, TailSessionResponse,
};

use super::Sessions;
use crate::outlet::Outgoing;
use crate::service::Limit;
use crate::{metrics, validate};

impl Sessions {
    pub(super) async fn start(
        &self,
        request: Request<StartAgentSessionRequest>,
    ) -> Result<Response<Outgoing<SessionsResponse>>, Status> {
        let (account, request) = self.authenticate(request)?;
        let kind = if request.resume_session_id.is_empty() {
            "start"
        } else {
            "resume"
        };
        self.core
            .streaming(
                Limit::Bodies,
                async move |core, abandoned| core.prepare_start(&account, request, &abandoned).await,
                async move |core, started, outlet| {
                    let result = core.start(started, &outlet).await;
                    metrics::body(kind, result.is_ok());
                    result
                },
            )
            .await
    }

    pub(super) async fn export(
        &self,
        request: Request<ExportSessionRequest>,
    ) -> Result<Response<Outgoing<ExportSessionResponse>>, Status> {
        let (account, request) = self.authenticate(request)?;
        self.core
            .streaming(
                Limit::Bodies,
                async move |core, abandoned| {
                    let session = validate::session_id(&request.session_id)?;
                    core.prepare_export(session, &account, &abandoned).await
                },
                async move |core, range, outlet| {
                    let result = core.export(range, &outlet).await;
                    metrics::body("export", result.is_ok());
                    result
                },
            )
            .await
    }

    pub(super) async fn tail(
        &self,
        request: Request<TailSessionRequest>,
    ) -> Result<Response<Outgoing<TailSessionResponse>>, Status> {
        let (account, request) = self.authenticate(request)?;
        self.core
            .streaming(
                Limit::Tails,
                async move |core, _| core.prepare_tail(account, request).await,
                async move |core, tail, outlet| core.tail(tail, &outlet).await,
            )
            .await
    }
}
