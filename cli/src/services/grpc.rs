//! Which gRPC services share a listener, and in which order they stop.

use std::future::Future;
use std::net::TcpListener;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tonic::service::RoutesBuilder;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use wakelog_archive::ObjectStore;
use wakelog_contract::{CallerTokens, TokenSigner};
use wakelog_store::Store;
use wakelog_stream::{LogReader, Producer};

use super::{service_error, stream_error};
use crate::exit::Error;

/// How often the server asks a client whether it is still there, and how long the answer may take.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// How long connections may take to end once the services have drained.
const CONNECTIONS_WAIT: Duration = Duration::from_secs(5);

/// How long the producer may take to hand over what it holds.
const FLUSH_WAIT: Duration = Duration::from_secs(5);

/// Bytes under way per stream: enough that a part does not wait for a window update.
const STREAM_WINDOW: u32 = 2 * 1024 * 1024;

/// What the gRPC services run on. Cheap to clone: each start of them takes one.
#[derive(Clone)]
pub(crate) struct Grpc {
    pub(crate) store: Store,
    pub(crate) stream: wakelog_stream::Options,
    pub(crate) signer: TokenSigner,
    /// Absent: no relay here.
    pub(crate) ingest: Option<wakelog_ingest::Options>,
    /// Absent: no sessions here.
    pub(crate) sessions: Option<(wakelog_reconstructor::Options, CallerTokens)>,
    /// Where bodies are that have left the hot tail. Absent: nothing has.
    pub(crate) objects: Option<ObjectStore>,
}

impl Grpc {
    /// Serves on `listener` until `shutdown`: then the services drain, and only after that connections end, so that what
    /// is in flight is answered.
    pub(crate) async fn run(self, listener: TcpListener, shutdown: CancellationToken) -> Result<(), Error> {
        let producer = Producer::new(&self.stream).map_err(stream_error)?;
        let reader = LogReader::new(&self.stream).map_err(stream_error)?;
        let mut routes = RoutesBuilder::default();
        let mut services: Vec<futures::future::BoxFuture<'static, Result<(), Error>>> = Vec::new();
        // The first one that ends takes the others with it.
        let stop = shutdown.child_token();
        if let Some(options) = self.ingest {
            let (store, signer) = (self.store.clone(), self.signer.clone());
            let service =
                wakelog_ingest::Service::new(options, store, producer.clone(), reader.clone(), signer)
                    .map_err(|error| service_error("ingest", &error))?;
            let (relay, gateway) = service.router_parts();
            routes.add_service(relay).add_service(gateway);
            let run = service.run(stop.clone());
            services.push(Box::pin(async move {
                run.await.map_err(|error| service_error("ingest", &error))
            }));
        }
        if let Some((options, callers)) = self.sessions {
            let (store, signer) = (self.store.clone(), self.signer.clone());
            let service = wakelog_reconstructor::Service::new(
                options,
                store,
                self.objects,
                producer.clone(),
                reader,
                signer,
                callers,
            )
            .map_err(|error| service_error("reconstructor", &error))?;
            routes.add_service(service.sessions_server());
            let run = service.run(stop.clone());
            services.push(Box::pin(async move {
                run.await.map_err(|error| service_error("reconstructor", &error))
            }));
        }
        let drained = CancellationToken::new();
        let server = serve(listener, routes, drained.clone());
        let services = async {
            let runs = services.into_iter().map(|run| ended(run, &stop));
            let outcomes = futures::future::join_all(runs).await;
            if let Err(error) = producer.flush(FLUSH_WAIT).await {
                tracing::warn!(%error, "the producer did not hand over all that it held");
            }
            drained.cancel();
            outcomes.into_iter().collect::<Result<(), Error>>()
        };
        let (outcome, served) = tokio::join!(services, ended(server, &stop));
        outcome.and(served)
    }
}

/// Awaits a run and stops the others when it ends.
async fn ended(run: impl Future<Output = Result<(), Error>>, stop: &CancellationToken) -> Result<(), Error> {
    let outcome = run.await;
    stop.cancel();
    outcome
}

async fn serve(
    listener: TcpListener,
    routes: RoutesBuilder,
    drained: CancellationToken,
) -> Result<(), Error> {
    let listener = tokio::net::TcpListener::from_std(listener)
        .map_err(|error| Error::io("the gRPC listener", &error))?;
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(4 * STREAM_WINDOW)
        .add_routes(routes.routes())
        .serve_with_incoming_shutdown(
            // Without it a small message that follows another one waits for the receiver's delayed ack: 40 ms.
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            drained.clone().cancelled_owned(),
        );
    let too_long = async {
        drained.cancelled().await;
        tokio::time::sleep(CONNECTIONS_WAIT).await;
    };
    tokio::select! {
        served = server => served.map_err(|error| service_error("the gRPC server", &error)),
        () = too_long => {
            tracing::warn!("connections that did not end were cut");
            Ok(())
        }
    }
}
