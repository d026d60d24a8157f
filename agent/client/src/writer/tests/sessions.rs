//! A sessions service that renews tokens and does nothing else.

use wakelog_proto::v1::sessions_service_server::{SessionsService, SessionsServiceServer};
use wakelog_proto::v1::*;

use super::*;

macro_rules! not_here {
    ($($name:ident: $request:ty => $response:ty;)*) => {
        #[tonic::async_trait]
        impl SessionsService for Renewals {
            $(
                async fn $name(&self, _request: Request<$request>) -> Result<Response<$response>, Status> {
                    Err(Status::unimplemented("not here"))
                }
            )*

            type StartAgentSessionStream = NoStream<SessionsResponse>;
            type ExportSessionStream = NoStream<ExportSessionResponse>;
            type TailSessionStream = NoStream<TailSessionResponse>;

            async fn renew_lifetime_token(
                &self,
                request: Request<RenewLifetimeTokenRequest>,
            ) -> Result<Response<RenewLifetimeTokenResponse>, Status> {
                if self.away {
                    return Err(Status::unavailable("away"));
                }
                assert_eq!(request.metadata().get("authorization").unwrap(), "Bearer first");
                let lifetime = LifetimeGrant { token: "renewed".to_owned(), ..Default::default() };
                Ok(Response::new(RenewLifetimeTokenResponse { lifetime: Some(lifetime) }))
            }
        }
    };
}

not_here! {
    open_session: OpenSessionRequest => OpenSessionResponse;
    attach_writer: AttachWriterRequest => AttachWriterResponse;
    start_agent_session: StartAgentSessionRequest => NoStream<SessionsResponse>;
    stop_agent_session: StopAgentSessionRequest => StopAgentSessionResponse;
    export_session: ExportSessionRequest => NoStream<ExportSessionResponse>;
    tail_session: TailSessionRequest => NoStream<TailSessionResponse>;
    list_sessions: ListSessionsRequest => ListSessionsResponse;
    describe_session: DescribeSessionRequest => DescribeSessionResponse;
    erase_session: EraseSessionRequest => EraseSessionResponse;
}

pub(super) fn server(away: bool) -> SessionsServiceServer<Renewals> {
    SessionsServiceServer::new(Renewals { away })
}
