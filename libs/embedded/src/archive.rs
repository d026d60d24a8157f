//! The archive engine: an S3 server on a folder.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder as ConnectionBuilder;
use hyper_util::server::graceful::GracefulShutdown;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::data_dir::create_folder;
use crate::watch::{Failures, supervise};
use crate::{Engine, Error};

const BUCKET: &str = "wakelog";
const ACCESS_KEY: &str = "wakelog";
const STOP_BOUND: Duration = Duration::from_secs(5);
const PAUSE_AFTER_ACCEPT_ERROR: Duration = Duration::from_millis(100);

/// Where the archive is and how to sign for it.
#[derive(Clone, PartialEq, Eq)]
pub struct ArchiveAddress {
    /// `http://127.0.0.1:PORT`; path-style addressing.
    pub endpoint: String,
    /// The bucket, which exists.
    pub bucket: String,
    /// The access key.
    pub access_key: String,
    /// The secret key, drawn anew at every start.
    pub secret_key: String,
}

impl std::fmt::Debug for ArchiveAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ArchiveAddress")
            .field("endpoint", &self.endpoint)
            .field("bucket", &self.bucket)
            .field("access_key", &self.access_key)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct Archive {
    address: ArchiveAddress,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Archive {
    pub(crate) async fn start(folder: &Path, port: u16, failures: Failures) -> Result<Self, Error> {
        let folder = create_folder(folder)?;
        create_folder(&folder.join(BUCKET))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(|error| Error::of_bind(Engine::Archive, port, &error))?;
        let bound = listener
            .local_addr()
            .map_err(|error| Error::not_started(Engine::Archive, error))?;
        let address = ArchiveAddress {
            endpoint: format!("http://{bound}"),
            bucket: BUCKET.to_owned(),
            access_key: ACCESS_KEY.to_owned(),
            secret_key: Uuid::new_v4().simple().to_string(),
        };
        let files = s3s_fs::FileSystem::new(&folder)
            .map_err(|error| Error::not_started(Engine::Archive, format!("{error:?}")))?;
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(
            address.access_key.clone(),
            address.secret_key.clone(),
        ));
        let stop = CancellationToken::new();
        let work = serve(listener, builder.build(), stop.clone());
        let task = supervise(Engine::Archive, stop.clone(), failures, work);
        Ok(Self { address, stop, task })
    }

    pub(crate) fn address(&self) -> &ArchiveAddress {
        &self.address
    }

    pub(crate) async fn stop(mut self) -> Result<(), Error> {
        self.stop.cancel();
        let waited = STOP_BOUND * 2;
        match timeout(waited, &mut self.task).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::NotStopped {
                engine: Engine::Archive,
                waited,
            }),
        }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn serve(listener: TcpListener, service: S3Service, stop: CancellationToken) -> Result<(), String> {
    let server = ConnectionBuilder::new(TokioExecutor::new());
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let socket = match accepted {
            Ok((socket, _)) => socket,
            Err(error) => {
                tracing::warn!(%error, "archive can't accept a connection");
                tokio::time::sleep(PAUSE_AFTER_ACCEPT_ERROR).await;
                continue;
            }
        };
        let connection = server.serve_connection(TokioIo::new(socket), service.clone());
        let connection = connections.watch(connection.into_owned());
        let stop = stop.clone();
        tokio::spawn(async move {
            // Past the bound a connection that is still busy is cut, or it would go on writing in a folder that is
            // no longer ours.
            tokio::select! {
                ended = connection => if let Err(error) = ended {
                    tracing::debug!(%error, "archive connection ended");
                },
                () = cancelled_for(&stop, STOP_BOUND) => {}
            }
        });
    }
    drop(listener);
    if timeout(STOP_BOUND + Duration::from_secs(1), connections.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("archive cuts connections that are still busy");
    }
    Ok(())
}

async fn cancelled_for(stop: &CancellationToken, bound: Duration) {
    stop.cancelled().await;
    tokio::time::sleep(bound).await;
}
