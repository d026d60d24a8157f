//! The log engine: a Tansu broker on a SQLite file.
//!
//! Tansu's own `Broker` is not used: it takes over SIGINT and SIGTERM, prints to stdout, can be stopped by a signal only
//! and panics when its port is taken. Its parts (storage, group coordinator, request router) are public, so the
//! listener, the connections and the maintenance timer are ours.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rama_core::{Context, Service as _};
use tansu_broker::coordinator::group::administrator::Controller;
use tansu_broker::service::services;
use tansu_storage::{BrokerRegistrationRequest, Storage as _, StorageContainer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

use crate::data_dir::create_folder;
use crate::watch::{Failures, supervise};
use crate::{Engine, Error};

mod storage_url;

use storage_url::StorageUrl;

const CLUSTER: &str = "wakelog";
const NODE: i32 = 1;
const DATABASE_FILE: &str = "tansu.db";
const WRITE_AHEAD_LOG: &str = "tansu.db-wal";
const OPEN_ATTEMPTS: u32 = 50;
const OPEN_PAUSE: Duration = Duration::from_millis(100);
const START_BOUND: Duration = Duration::from_secs(30);
const STOP_BOUND: Duration = Duration::from_secs(5);
const CLOSE_POLL: Duration = Duration::from_millis(5);
const PING_EVERY: Duration = Duration::from_secs(2);
const MAINTAIN_EVERY: Duration = Duration::from_secs(600);
const PAUSE_AFTER_ACCEPT_ERROR: Duration = Duration::from_millis(100);
const MAX_CONNECTIONS: usize = 1024;

#[derive(Debug)]
pub(crate) struct Log {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Log {
    pub(crate) async fn start(folder: &Path, port: u16, failures: Failures) -> Result<Self, Error> {
        let folder = create_folder(folder)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(|error| Error::of_bind(Engine::Log, port, &error))?;
        let address = listener
            .local_addr()
            .map_err(|error| Error::not_started(Engine::Log, error))?;
        let stop = CancellationToken::new();
        let opened = Box::pin(Broker::open(&folder, address, stop.clone()));
        let broker = timeout(START_BOUND, opened).await.map_err(|_| Error::NotReady {
            engine: Engine::Log,
            waited: START_BOUND,
        })??;
        let work = broker.serve(listener);
        let log = Self {
            address,
            stop: stop.clone(),
            task: supervise(Engine::Log, stop, failures, work),
        };
        timeout(START_BOUND, ask_api_versions(address))
            .await
            .map_err(|_| Error::NotReady {
                engine: Engine::Log,
                waited: START_BOUND,
            })?
            .map_err(|error| Error::not_started(Engine::Log, error))?;
        Ok(log)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn stop(mut self) -> Result<(), Error> {
        self.stop.cancel();
        let waited = STOP_BOUND * 2;
        match timeout(waited, &mut self.task).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::NotStopped {
                engine: Engine::Log,
                waited,
            }),
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Broker {
    storage: StorageContainer,
    groups: Controller<StorageContainer>,
    stop: CancellationToken,
    /// Ends the storage's own task, once no connection uses it any more.
    stop_storage: CancellationToken,
    /// Tansu opens the file anew for further SQLite connections, so its name has to stay valid.
    storage_url: StorageUrl,
    write_ahead_log: PathBuf,
}

impl Broker {
    async fn open(folder: &Path, address: SocketAddr, stop: CancellationToken) -> Result<Self, Error> {
        let storage_url = StorageUrl::of_file(&folder.join(DATABASE_FILE))?;
        let advertised = Url::parse(&format!("tcp://{address}"))
            .map_err(|error| Error::not_started(Engine::Log, error))?;
        let stop_storage = CancellationToken::new();
        let storage = open_storage(&storage_url, advertised, &stop_storage).await?;
        let groups = Controller::with_storage(storage.clone())
            .map_err(|error| Error::not_started(Engine::Log, error))?;
        Ok(Self {
            storage,
            groups,
            stop,
            stop_storage,
            storage_url,
            write_ahead_log: folder.join(WRITE_AHEAD_LOG),
        })
    }

    async fn serve(self, listener: TcpListener) -> Result<(), String> {
        let mut connections = JoinSet::new();
        let mut storage_gone = Box::pin(until_storage_is_gone(self.storage.clone()));
        let mut maintain = interval(MAINTAIN_EVERY);
        maintain.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let outcome = loop {
            tokio::select! {
                () = self.stop.cancelled() => break Ok(()),
                accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((socket, _)) => self.spawn_connection(&mut connections, socket)?,
                    Err(error) => {
                        tracing::warn!(%error, "log can't accept a connection");
                        tokio::time::sleep(PAUSE_AFTER_ACCEPT_ERROR).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                () = &mut storage_gone => break Err("its storage has ended".to_owned()),
                _ = maintain.tick() => {
                    let storage = self.storage.clone();
                    connections.spawn(async move {
                        if let Err(error) = storage.maintain(SystemTime::now()).await {
                            tracing::warn!(%error, "log maintenance failed");
                        }
                    });
                }
            }
        };
        drop(listener);
        connections.shutdown().await;
        drop(storage_gone);
        self.close_storage().await;
        outcome
    }

    fn spawn_connection(&self, connections: &mut JoinSet<()>, socket: TcpStream) -> Result<(), String> {
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "log connection was gone at once");
            return Ok(());
        }
        let service = services(CLUSTER, self.groups.clone(), self.storage.clone(), None)
            .map_err(|error| format!("its request router can't be built: {error}"))?;
        connections.spawn(async move {
            let served = Box::pin(service.serve(Context::default(), socket)).await;
            if let Err(error) = served {
                tracing::debug!(%error, "log connection ended");
            }
        });
        Ok(())
    }

    /// Waits until SQLite has closed the file: its last connection removes the write-ahead log.
    async fn close_storage(self) {
        let Self {
            storage,
            groups,
            stop_storage,
            storage_url,
            write_ahead_log,
            ..
        } = self;
        stop_storage.cancel();
        drop((storage, groups));
        let closed = async {
            while write_ahead_log.exists() {
                tokio::time::sleep(CLOSE_POLL).await;
            }
        };
        if timeout(STOP_BOUND, closed).await.is_err() {
            tracing::warn!("log database is still open and is left to itself");
        }
        drop(storage_url);
    }
}

/// SQLite says "locked" while an earlier stack on this file is still closing it, and Tansu sets no busy timeout.
async fn open_storage(
    storage_url: &StorageUrl,
    advertised: Url,
    stop: &CancellationToken,
) -> Result<StorageContainer, Error> {
    let mut attempt = 1;
    loop {
        let opened = Box::pin(open_storage_once(storage_url, advertised.clone(), stop.clone())).await;
        match opened {
            Ok(storage) => return Ok(storage),
            Err(error) if attempt < OPEN_ATTEMPTS && is_locked(&error) => {
                tracing::debug!(attempt, "log database is still locked");
                tokio::time::sleep(OPEN_PAUSE).await;
                attempt += 1;
            }
            Err(error) => return Err(Error::not_started(Engine::Log, error)),
        }
    }
}

async fn open_storage_once(
    storage_url: &StorageUrl,
    advertised: Url,
    stop: CancellationToken,
) -> Result<StorageContainer, tansu_storage::Error> {
    let storage = StorageContainer::builder()
        .cluster_id(CLUSTER)
        .node_id(NODE)
        .advertised_listener(advertised)
        .storage(storage_url.url().clone())
        .schema_registry(None)
        .lake_house(None)
        .cancellation(stop)
        .silent(true)
        .build()
        .await?;
    storage
        .register_broker(BrokerRegistrationRequest {
            broker_id: NODE,
            cluster_id: CLUSTER.to_owned(),
            incarnation_id: Uuid::now_v7(),
            rack: None,
        })
        .await?;
    Ok(storage)
}

/// The result code is buried under a connection pool's error.
fn is_locked(error: &tansu_storage::Error) -> bool {
    format!("{error:?}").contains("database is locked")
}

/// Tansu's storage is one task that ends on some errors, and nothing works after that. One of these errors is an answer
/// that nobody waits for any more: so no request to it, and no ping either, may be given up while the log is in use.
async fn until_storage_is_gone(storage: StorageContainer) {
    while storage.ping().await.is_ok() {
        tokio::time::sleep(PING_EVERY).await;
    }
}

/// One `ApiVersions` request (version 0): the broker is ready when it answers it.
async fn ask_api_versions(address: SocketAddr) -> std::io::Result<()> {
    const CORRELATION: i32 = 1;
    let client = b"wakelog";
    let mut request = Vec::new();
    request.extend_from_slice(&18_i16.to_be_bytes());
    request.extend_from_slice(&0_i16.to_be_bytes());
    request.extend_from_slice(&CORRELATION.to_be_bytes());
    request.extend_from_slice(&7_i16.to_be_bytes());
    request.extend_from_slice(client);
    let mut socket = TcpStream::connect(address).await?;
    socket
        .write_i32(i32::try_from(request.len()).unwrap_or(i32::MAX))
        .await?;
    socket.write_all(&request).await?;
    let _length = socket.read_i32().await?;
    match socket.read_i32().await? {
        CORRELATION => Ok(()),
        other => Err(std::io::Error::other(format!(
            "answered request {other} instead of {CORRELATION}"
        ))),
    }
}
