//! How a server is reached, and which token goes with which call.

use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use wakelog_proto::v1::CommitConversationFrameRequest;
use wakelog_proto::v1::relay_service_client::RelayServiceClient;
use wakelog_proto::v1::sessions_service_client::SessionsServiceClient;

use crate::Error;
use crate::error::is_other_protocol;

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

/// A server, its relays and the caller's token.
#[derive(Debug, Clone)]
pub struct Connection {
    server: Server,
    /// Other servers of the same, connected to if they are needed.
    others: Vec<Server>,
    relays: Vec<Server>,
    bearer: Bearer,
}

/// A server, and where it is.
#[derive(Debug, Clone)]
struct Server {
    endpoint: String,
    channel: Channel,
}

/// The relays of a writer: it uses one, and goes to the next when that one breaks.
#[derive(Debug, Clone)]
pub struct Relays {
    relays: Vec<Server>,
    current: usize,
    sessions: Vec<Channel>,
    renewing: usize,
}

impl Relays {
    /// The relay in use.
    pub(crate) fn current(&self) -> Channel {
        self.relays[self.current].channel.clone()
    }

    /// Where the relay in use is.
    pub(crate) fn current_endpoint(&self) -> &str {
        &self.relays[self.current].endpoint
    }

    /// Goes to the next relay; with only one there is nothing to go to.
    pub(crate) fn fail_over(&mut self) {
        self.current = (self.current + 1) % self.relays.len();
    }

    /// The number of the relay in use.
    pub(crate) fn current_number(&self) -> usize {
        self.current
    }

    /// The number of the server that renews tokens.
    pub(crate) fn server_number(&self) -> usize {
        self.renewing
    }

    /// How many relays there are, and how many servers that renew tokens.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.relays.len(), self.sessions.len())
    }

    /// Where the lifetime token is renewed.
    pub(crate) fn sessions(&self) -> Channel {
        self.sessions[self.renewing].clone()
    }

    /// Renews the token elsewhere from now on: a writer may outlive the server that it was opened with.
    pub(crate) fn fail_over_sessions(&mut self) {
        self.renewing = (self.renewing + 1) % self.sessions.len();
    }
}

impl Connection {
    /// Connects to `endpoint`, for instance `http://127.0.0.1:7420`.
    pub async fn connect(endpoint: &str, caller_token: Option<String>) -> Result<Self, Error> {
        let bearer = match caller_token {
            Some(token) => Bearer::new(&token)?,
            None => Bearer::none(),
        };
        let connected = transport(endpoint)?.connect().await;
        let channel = connected.map_err(|error| Error::Unreachable {
            endpoint: endpoint.to_owned(),
            waited: CONNECT_TIMEOUT,
            reason: innermost(&error),
        })?;
        Ok(Self {
            server: Server {
                endpoint: endpoint.to_owned(),
                channel,
            },
            others: Vec::new(),
            relays: Vec::new(),
            bearer,
        })
    }

    /// Connects to the first of `endpoints`, as a comma-separated list, that can be reached. A writer renews its token at
    /// any of them.
    pub async fn connect_any(endpoints: &str, caller_token: Option<String>) -> Result<Self, Error> {
        let endpoints: Vec<&str> = endpoints.split(',').map(str::trim).collect();
        let mut index = 0;
        let mut connection = loop {
            match Self::connect(endpoints[index], caller_token.clone()).await {
                Err(Error::Unreachable { .. }) if index + 1 < endpoints.len() => index += 1,
                outcome => break outcome?,
            }
        };
        let others = endpoints[index + 1..].iter().chain(&endpoints[..index]);
        connection.others = others
            .map(|endpoint| Server::lazy(endpoint))
            .collect::<Result<_, Error>>()?;
        Ok(connection)
    }

    /// Names the relays, as a comma-separated list, if they are not served together with the sessions. They are connected
    /// to when they are used: one that is away now may be back by then.
    pub fn with_relays(mut self, endpoints: &str) -> Result<Self, Error> {
        let relays = endpoints.split(',').map(str::trim).map(Server::lazy);
        self.relays = relays.collect::<Result<_, Error>>()?;
        Ok(self)
    }

    /// Says what is wrong with a comma-separated list of endpoints, before anything is connected to.
    pub fn check_endpoints(endpoints: &str) -> Result<(), Error> {
        let mut each = endpoints.split(',').map(str::trim);
        each.try_for_each(|endpoint| transport(endpoint).map(drop))
    }

    /// Where the server is.
    pub fn endpoint(&self) -> &str {
        &self.server.endpoint
    }

    /// The connection itself, without a token.
    pub fn channel(&self) -> Channel {
        self.server.channel.clone()
    }

    /// Where a writer sends its entries.
    pub fn relays(&self) -> Relays {
        Relays {
            relays: self.named_relays(),
            current: 0,
            sessions: self.servers().map(|server| server.channel.clone()).collect(),
            renewing: 0,
        }
    }

    /// The first relay itself, without a token.
    pub fn relay_channel(&self) -> Channel {
        self.named_relays().swap_remove(0).channel
    }

    /// Whether each relay can be reached and takes entries; in the order in which a writer tries them.
    pub async fn check_relays(&self) -> Vec<(String, Result<(), Error>)> {
        let mut checked = Vec::new();
        for relay in self.named_relays() {
            let outcome = check_relay(&relay).await;
            checked.push((relay.endpoint, outcome));
        }
        checked
    }

    /// The sessions service with the caller's token.
    pub fn sessions(&self) -> Sessions {
        self.sessions_at(&self.server)
    }

    /// The same at every server of the list, the one in use first, each with where it is.
    pub fn all_sessions(&self) -> Vec<(String, Sessions)> {
        let servers = self.servers();
        servers
            .map(|server| (server.endpoint.clone(), self.sessions_at(server)))
            .collect()
    }

    fn sessions_at(&self, server: &Server) -> Sessions {
        SessionsServiceClient::with_interceptor(server.channel.clone(), self.bearer.clone())
    }

    fn servers(&self) -> impl Iterator<Item = &Server> {
        std::iter::once(&self.server).chain(&self.others)
    }

    fn named_relays(&self) -> Vec<Server> {
        match self.relays.is_empty() {
            true => vec![self.server.clone()],
            false => self.relays.clone(),
        }
    }
}

impl Server {
    /// It is connected to when it is used.
    fn lazy(endpoint: &str) -> Result<Self, Error> {
        Ok(Self {
            endpoint: endpoint.to_owned(),
            channel: transport(endpoint)?.connect_lazy(),
        })
    }
}

/// Asks for what a relay refuses to everybody: a frame without a token. Any refusal but "no such service" will do.
async fn check_relay(relay: &Server) -> Result<(), Error> {
    let unreachable = |reason: String| Error::Unreachable {
        endpoint: relay.endpoint.clone(),
        waited: CONNECT_TIMEOUT,
        reason,
    };
    let mut client = RelayServiceClient::new(relay.channel.clone());
    let asking = client.commit_conversation_frame(CommitConversationFrameRequest::default());
    let answer = tokio::time::timeout(CONNECT_TIMEOUT, asking).await;
    match answer.map_err(|_| unreachable("no answer".to_owned()))? {
        Err(status) if is_other_protocol(&status) => Err(status.into()),
        Err(status) if status.code() == Code::Unimplemented => Err(Error::NoRelay {
            endpoint: relay.endpoint.clone(),
        }),
        // A status with a source was made here, of a connection that failed.
        Err(status) => match std::error::Error::source(&status) {
            Some(source) => Err(unreachable(innermost(source))),
            None => Ok(()),
        },
        Ok(_) => Ok(()),
    }
}

fn transport(endpoint: &str) -> Result<Endpoint, Error> {
    let unusable = |reason: String| Error::Endpoint {
        endpoint: endpoint.to_owned(),
        reason,
    };
    if endpoint.starts_with("https://") {
        return Err(unusable(
            "TLS is not built yet, it must start with http://".to_owned(),
        ));
    }
    if !endpoint.starts_with("http://") {
        return Err(unusable("it must start with http://".to_owned()));
    }
    Ok(Endpoint::from_shared(endpoint.to_owned())
        .map_err(|error| unusable(error.to_string()))?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(2 * STREAM_WINDOW))
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
