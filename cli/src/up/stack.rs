//! What is started in which order, and stopped in which.
//!
//! Started: ports are taken, the folder is locked, engines, schema, topic, secrets, services. Stopped: the gRPC services
//! drain while the persister still folds what they wait for, then the persister, then the engines.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use wakelog_archive::ObjectStore;
use wakelog_archiver::Share;
use wakelog_store::Store;
use wakelog_stream::LogReader;

use super::engines::{Engines, Wanted};
use super::foundation::{Foundation, lay_foundation};
use crate::config::S3Settings;
use crate::config::hide::Secret;
use crate::exit::Error;
use crate::services::grpc::Grpc;
use crate::services::health::{Health, PartState};
use crate::services::supervisor::supervise;
use crate::services::{alone, archive, bind, http, probe};

/// How long each step of the stop may take. Longer than what a service waits for by itself.
const GRPC_WAIT: Duration = Duration::from_secs(25);
const PERSISTER_WAIT: Duration = Duration::from_secs(25);
const ARCHIVER_WAIT: Duration = Duration::from_secs(25);
const HTTP_WAIT: Duration = Duration::from_secs(2);

const GRPC: &str = "grpc";
const PERSISTER: &str = "persister";
const ARCHIVER: &str = "archiver";

/// What to start.
#[derive(Clone)]
pub(crate) struct StackOptions {
    pub(crate) data_dir: PathBuf,
    /// Absent: an embedded log.
    pub(crate) brokers: Option<String>,
    /// Absent: an embedded database.
    pub(crate) database_url: Option<Secret>,
    pub(crate) database_connections: Option<u32>,
    pub(crate) topic: String,
    pub(crate) group: Option<String>,
    pub(crate) partitions: Option<i32>,
    pub(crate) replication: i32,
    pub(crate) kafka: BTreeMap<String, String>,
    pub(crate) s3: S3Settings,
    /// Absent: an embedded archive beside an embedded database, else none.
    pub(crate) archive: Option<ObjectStore>,
    pub(crate) listen: SocketAddr,
    /// Absent: no pages.
    pub(crate) http_listen: Option<SocketAddr>,
    /// Absent: in the data folder, drawn if there is none.
    pub(crate) token_key_file: Option<PathBuf>,
    pub(crate) caller_token_file: Option<PathBuf>,
}

/// A stack that runs in this process. [`RunningStack::stop`] is its orderly end.
pub(crate) struct RunningStack {
    /// Where gRPC is served, as a URL.
    pub(crate) endpoint: String,
    /// Where the pages are served, as a URL.
    pub(crate) http_endpoint: Option<String>,
    /// A caller token of this stack.
    #[allow(dead_code, reason = "for programs that start a stack in their own process")]
    pub(crate) caller_token: String,
    pub(crate) caller_token_file: PathBuf,
    pub(crate) data_dir: PathBuf,
    pub(crate) is_embedded: bool,
    pub(crate) store: Store,
    #[allow(dead_code, reason = "for programs that start a stack in their own process")]
    pub(crate) reader: LogReader,
    #[allow(dead_code, reason = "for programs that start a stack in their own process")]
    pub(crate) stream: wakelog_stream::Options,
    #[allow(dead_code, reason = "for programs that start a stack in their own process")]
    pub(crate) health: Health,
    /// The archive, if there is one; resumes ask it through this handle.
    pub(crate) objects: Option<ObjectStore>,
    engines: Engines,
    probe: DropGuard,
    grpc: Part,
    persister: Part,
    archiver: Option<Part>,
    http: Option<Part>,
}

/// A running part; it is asked to stop when this is dropped.
struct Part {
    stop: DropGuard,
    task: JoinHandle<Result<(), Error>>,
}

impl RunningStack {
    /// Starts everything; each part answers when this returns, but the persister may still be joining its group.
    pub(crate) async fn start(options: StackOptions) -> Result<Self, Error> {
        let grpc_listener = bind(options.listen, "--listen")?;
        let http_listener = options
            .http_listen
            .map(|address| bind(address, "--http-listen"))
            .transpose()?;
        let endpoint = url_of(&grpc_listener)?;
        let http_endpoint = http_listener.as_ref().map(url_of).transpose()?;
        let health = Health::expecting(&[GRPC, PERSISTER]);
        // The pages come first: that a stack is not ready yet is an answer too.
        let http = http_listener.map(|listener| {
            let health = health.clone();
            Part::spawn(|stop| http::serve(listener, health, stop))
        });
        let (log, hot_tail) = (options.brokers.is_none(), options.database_url.is_none());
        let wanted = Wanted {
            log,
            hot_tail,
            archive: hot_tail && options.archive.is_none(),
        };
        let engines = Engines::start(&options.data_dir, wanted).await?;
        let foundation = match Box::pin(lay_foundation(&options, &engines)).await {
            Ok(foundation) => foundation,
            Err(error) => {
                if let Err(error) = engines.stop().await {
                    tracing::warn!(%error, "the engines did not stop after a failed start");
                }
                return Err(error);
            }
        };
        let Foundation {
            store,
            stream,
            partitions,
            retention,
            objects,
            reader,
            signer,
            callers,
            caller_token_file,
            caller_token,
        } = foundation;
        // A handle of its own: what the archiver asks is not what resumes ask.
        let own = |objects: &ObjectStore| ObjectStore::new(objects.options().clone());
        let archivers = objects.as_ref().map(own).transpose();
        let archivers = archivers.map_err(archive::archive_error)?;
        let archiver = archivers.map(|objects| {
            health.set(ARCHIVER, PartState::Starting);
            let share = share(&stream, partitions);
            let options = archive::options(&options.s3, &options.topic, share, retention);
            let (store, log, health) = (store.clone(), reader.clone(), health.clone());
            Part::spawn(move |stop| archive::archiver(options, store, objects, log, health, stop))
        });
        if archiver.is_none() {
            tracing::warn!("no archive is configured: history stays in the database");
        }
        let grpc = Grpc {
            store: store.clone(),
            stream: stream.clone(),
            signer,
            ingest: Some(wakelog_ingest::Options::new(&options.topic)),
            sessions: Some((wakelog_reconstructor::Options::new(&options.topic), callers)),
            objects: objects.clone(),
        };
        let probe = probe::watch(&health, &store, &reader, &stream.topic);
        let persister = {
            let options = wakelog_persister::Options::new(stream.clone());
            let (store, health) = (store.clone(), health.clone());
            Part::spawn(move |stop| alone::persister(options, store, health, stop))
        };
        let grpc = {
            let health = health.clone();
            Part::spawn(move |stop| serve_grpc(grpc, grpc_listener, health, stop))
        };
        Ok(Self {
            endpoint,
            http_endpoint,
            caller_token,
            caller_token_file,
            data_dir: engines.data_dir().to_path_buf(),
            is_embedded: log || hot_tail,
            store,
            reader,
            stream,
            health,
            objects,
            engines,
            probe,
            grpc,
            persister,
            archiver,
            http,
        })
    }

    /// Waits for an engine to end by itself, which nothing in this process can mend; for ever if none does.
    pub(crate) async fn failed(&self) -> Error {
        self.engines.failed().await
    }

    /// Stops everything in order, each step within a bound. The first error is returned after all steps.
    pub(crate) async fn stop(self) -> Result<(), Error> {
        let grpc = self.grpc.stop("the gRPC services", GRPC_WAIT).await;
        let persister = self.persister.stop("the persister", PERSISTER_WAIT).await;
        let archiver = match self.archiver {
            Some(archiver) => archiver.stop("the archiver", ARCHIVER_WAIT).await,
            None => Ok(()),
        };
        drop(self.probe);
        self.store.close().await;
        let engines = self.engines.stop().await;
        let http = match self.http {
            Some(http) => http.stop("the http pages", HTTP_WAIT).await,
            None => Ok(()),
        };
        grpc.and(persister).and(archiver).and(engines).and(http)
    }
}

impl Part {
    fn spawn<F>(start: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let task = tokio::spawn(start(stop.clone()));
        Self {
            stop: stop.drop_guard(),
            task,
        }
    }

    async fn stop(self, what: &str, bound: Duration) -> Result<(), Error> {
        drop(self.stop);
        let abort = self.task.abort_handle();
        match tokio::time::timeout(bound, self.task).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => Err(Error::failed(format!("{what} died: {error}"))),
            Err(_) => {
                abort.abort();
                Err(Error::failed(format!("{what} did not stop within {bound:?}")))
            }
        }
    }
}

async fn serve_grpc(
    grpc: Grpc,
    listener: TcpListener,
    health: Health,
    stop: CancellationToken,
) -> Result<(), Error> {
    supervise(GRPC, health, stop, move |stop| {
        let (grpc, listener) = (grpc.clone(), listener.try_clone());
        async move {
            let listener = listener.map_err(|error| Error::io("the gRPC listener", &error))?;
            grpc.run(listener, stop).await
        }
    })
    .await
}

/// On an embedded log nobody shares the work, and a second consumer would keep the broker busy for nothing.
fn share(stream: &wakelog_stream::Options, partitions: i32) -> Share {
    if stream.embedded {
        return Share::All { partitions };
    }
    let mut stream = stream.clone();
    stream.group = format!("{}-archiver", stream.group);
    Share::Group(stream)
}

fn url_of(listener: &TcpListener) -> Result<String, Error> {
    let address = listener
        .local_addr()
        .map_err(|error| Error::io("a listener", &error))?;
    Ok(format!("http://{address}"))
}
