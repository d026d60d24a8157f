//! How a server is reached, and which token goes with which call.

use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use wakelog_proto::v1::sessions_service_client::SessionsServiceClient;

use crate::Error;

/// How long a connection attempt may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How often an HTTP/2 ping asks whether the peer is still there.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// How long the answer to such a ping may take.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes that may be under way per stream, so that a part does not wait for a window update.
const STREAM_WINDOW: u32 = 4 * 1024 * 1024;

/// The client of the sessions service, with its token.
pub type Sessions = SessionsServiceClient<InterceptedService<Channel, Bearer>>;

/// A server and the caller's token for it.
#[derive(Debug, Clone)]
pub struct Connection {
    endpoint: String,
    channel: Channel,
    bearer: Bearer,
}

impl Connection {
    /// Connects to `endpoint`, for instance `http://127.0.0.1:7420`.
    pub async fn connect(endpoint: &str, caller_token: Option<String>) -> Result<Self, Error> {
        let bearer = match caller_token {
            Some(token) => Bearer::new(&token)?,
            None => Bearer::none(),
        };
        let unusable = |reason: String| Error::Endpoint {
            endpoint: endpoint.to_owned(),
            reason,
        };
        if !endpoint.starts_with("http://") {
            return Err(unusable("it must start with http://".to_owned()));
        }
        let channel = Endpoint::from_shared(endpoint.to_owned())
            .map_err(|error| unusable(error.to_string()))?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(2 * STREAM_WINDOW)
            .connect()
            .await
            .map_err(|error| Error::Unreachable {
                endpoint: endpoint.to_owned(),
                waited: CONNECT_TIMEOUT,
                reason: innermost(&error),
            })?;
        Ok(Self {
            endpoint: endpoint.to_owned(),
            channel,
            bearer,
        })
    }

    /// Where the server is.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The connection itself, without a token.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The sessions service with the caller's token.
    pub fn sessions(&self) -> Sessions {
        SessionsServiceClient::with_interceptor(self.channel.clone(), self.bearer.clone())
    }
}

/// Puts a token on each call.
#[derive(Clone)]
pub struct Bearer {
    header: Option<MetadataValue<Ascii>>,
}

impl Bearer {
    /// Calls carry this token.
    pub fn new(token: &str) -> Result<Self, Error> {
        let mut header: MetadataValue<Ascii> = format!("Bearer {token}").parse().map_err(|_| Error::Token)?;
        header.set_sensitive(true);
        Ok(Self { header: Some(header) })
    }

    /// Calls carry no token.
    pub fn none() -> Self {
        Self { header: None }
    }
}

impl std::fmt::Debug for Bearer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Bearer")
            .field("present", &self.header.is_some())
            .finish()
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(header) = &self.header {
            request.metadata_mut().insert("authorization", header.clone());
        }
        Ok(request)
    }
}

/// The cause at the bottom: "connection refused" says more than "transport error".
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
