//! The gRPC surface: from a request to the step that answers it, and no further.

mod bodies;
mod lifetimes;
mod sessions;

use std::sync::Arc;

use tonic::{Request, Response, Status};
use wakelog_proto::v1::sessions_service_server::SessionsService;
use wakelog_proto::v1::{
    AttachWriterRequest, AttachWriterResponse, DescribeSessionRequest, DescribeSessionResponse,
    EraseSessionRequest, EraseSessionResponse, ExportSessionRequest, ExportSessionResponse,
    ListSessionsRequest, ListSessionsResponse, OpenSessionRequest, OpenSessionResponse,
    RenewLifetimeTokenRequest, RenewLifetimeTokenResponse, SessionsResponse, StartAgentSessionRequest,
    StopAgentSessionRequest, StopAgentSessionResponse, TailSessionRequest, TailSessionResponse,
};

use crate::Error;
use crate::core::Core;
use crate::outlet::Outgoing;

/// `wakelog.v1.SessionsService`.
#[derive(Clone)]
pub struct Sessions {
    core: Arc<Core>,
}

impl Sessions {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The account of a call, and what it asks for.
    fn authenticate<T>(&self, request: Request<T>) -> Result<(String, T), Status> {
        let account = self.core.caller(request.metadata()).map_err(Error::into_status)?;
        Ok((account, request.into_inner()))
    }
}

#[tonic::async_trait]
impl SessionsService for Sessions {
    type StartAgentSessionStream = Outgoing<SessionsResponse>;
    type ExportSessionStream = Outgoing<ExportSessionResponse>;
    type TailSessionStream = Outgoing<TailSessionResponse>;

    async fn open_session(
        &self,
        request: Request<OpenSessionRequest>,
    ) -> Result<Response<OpenSessionResponse>, Status> {
        self.open(request).await
    }

    async fn attach_writer(
        &self,
        request: Request<AttachWriterRequest>,
    ) -> Result<Response<AttachWriterResponse>, Status> {
        self.attach(request).await
    }

    async fn start_agent_session(
        &self,
        request: Request<StartAgentSessionRequest>,
    ) -> Result<Response<Self::StartAgentSessionStream>, Status> {
        self.start(request).await
    }

    async fn stop_agent_session(
        &self,
        request: Request<StopAgentSessionRequest>,
    ) -> Result<Response<StopAgentSessionResponse>, Status> {
        self.stop(request).await
    }

    async fn export_session(
        &self,
        request: Request<ExportSessionRequest>,
    ) -> Result<Response<Self::ExportSessionStream>, Status> {
        self.export(request).await
    }

    async fn tail_session(
        &self,
        request: Request<TailSessionRequest>,
    ) -> Result<Response<Self::TailSessionStream>, Status> {
        self.tail(request).await
    }

    async fn list_sessions(
        &self,
        request: Request<ListSessionsRequest>,
    ) -> Result<Response<ListSessionsResponse>, Status> {
        self.list(request).await
    }

    async fn describe_session(
        &self,
        request: Request<DescribeSessionRequest>,
    ) -> Result<Response<DescribeSessionResponse>, Status> {
        self.describe(request).await
    }

    async fn erase_session(
        &self,
        request: Request<EraseSessionRequest>,
    ) -> Result<Response<EraseSessionResponse>, Status> {
        self.erase(request).await
    }

    async fn renew_lifetime_token(
        &self,
        request: Request<RenewLifetimeTokenRequest>,
    ) -> Result<Response<RenewLifetimeTokenResponse>, Status> {
        self.renew(request).await
    }
}
