//! The hot tail engine: PGlite behind its gate.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use pglite_oxide::PgliteServer;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::data_dir::create_folder;
use crate::gate::{Gate, handshake};
use crate::watch::{Failures, supervise};
use crate::{Engine, Error};

const USER: &str = "postgres";
const DATABASE: &str = "postgres";
/// The first start of a user unpacks the runtime into the user's cache folder.
const START_BOUND: Duration = Duration::from_secs(60);
/// More than the gate may take to end the connection that is open.
const STOP_BOUND: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct HotTail {
    address: SocketAddr,
    stop: CancellationToken,
    gate: JoinHandle<()>,
    server: Option<PgliteServer>,
}

impl HotTail {
    pub(crate) async fn start(folder: &Path, failures: Failures) -> Result<Self, Error> {
        let folder = create_folder(folder)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(|error| Error::of_bind(Engine::HotTail, 0, &error))?;
        let address = listener
            .local_addr()
            .map_err(|error| Error::not_started(Engine::HotTail, error))?;
        let starting = spawn_blocking(move || {
            PgliteServer::builder()
                .path(folder)
                .username(USER)
                .database(DATABASE)
                .start()
        });
        let server = timeout(START_BOUND, starting)
            .await
            .map_err(|_| Error::NotReady {
                engine: Engine::HotTail,
                waited: START_BOUND,
            })?
            .map_err(|error| Error::not_started(Engine::HotTail, error))?
            .map_err(|error| Error::not_started(Engine::HotTail, format!("{error:#}")))?;
        let Some(upstream) = server.tcp_addr() else {
            return Err(Error::not_started(Engine::HotTail, "it has no TCP address"));
        };
        let stop = CancellationToken::new();
        let gate = Gate::new(upstream, stop.clone(), failures.clone());
        let hot_tail = Self {
            address,
            stop: stop.clone(),
            gate: supervise(Engine::HotTail, stop, failures, gate.serve(listener)),
            server: Some(server),
        };
        timeout(START_BOUND, handshake(address, USER, DATABASE))
            .await
            .map_err(|_| Error::NotReady {
                engine: Engine::HotTail,
                waited: START_BOUND,
            })?
            .map_err(|error| Error::not_started(Engine::HotTail, error))?;
        Ok(hot_tail)
    }

    pub(crate) fn database_url(&self) -> String {
        format!("postgresql://{USER}@{}/{DATABASE}?sslmode=disable", self.address)
    }

    pub(crate) async fn stop(mut self) -> Result<(), Error> {
        self.stop.cancel();
        let stopping = async {
            // The gate first: PGlite can only be stopped while nobody is connected to it.
            if let Err(error) = (&mut self.gate).await {
                tracing::warn!(%error, "hot tail gate was ended");
            }
            match self.server.take() {
                Some(server) => spawn_blocking(move || server.shutdown()).await,
                None => Ok(Ok(())),
            }
        };
        match timeout(STOP_BOUND, stopping).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(error))) => Err(Error::Ended {
                engine: Engine::HotTail,
                reason: format!("{error:#}"),
            }),
            Ok(Err(error)) => Err(Error::Ended {
                engine: Engine::HotTail,
                reason: error.to_string(),
            }),
            Err(_) => Err(Error::NotStopped {
                engine: Engine::HotTail,
                waited: STOP_BOUND,
            }),
        }
    }
}

impl Drop for HotTail {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(server) = self.server.take() {
            // Its own drop waits for its thread, and so for the gate, which may need the very thread we are on.
            std::thread::spawn(move || drop(server));
        }
    }
}
