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
use wakelog_contract::{CallerTokens, TokenSigner};
use wakelog_store::Store;
use wakelog_stream::LogReader;

use super::engines::{Engines, Wanted};
use crate::commands::token_of_file;
use crate::config::S3Settings;
use crate::config::hide::Secret;
use crate::exit::Error;
use crate::services::grpc::Grpc;
use crate::services::health::{Health, PartState};
use crate::services::supervisor::supervise;
use crate::services::topic::find_or_create_topic;
use crate::services::{alone, archive, bind, http, probe, secrets, store_error, stream_error};

/// Partitions of the topic on an embedded log.
const EMBEDDED_PARTITIONS: i32 = 4;

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

/// The engines with what was made on them.
struct Foundation {
    store: Store,
    stream: wakelog_stream::Options,
    partitions: i32,
    retention: Option<Duration>,
    objects: Option<ObjectStore>,
    reader: LogReader,
    signer: TokenSigner,
    callers: CallerTokens,
    caller_token_file: PathBuf,
    caller_token: String,
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
        let foundation = match lay_foundation(&options, &engines).await {
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

async fn lay_foundation(options: &StackOptions, engines: &Engines) -> Result<Foundation, Error> {
    let stream = stream_options(options, engines)?;
    let store_options = store_options(options, engines)?;
    let key_file = options
        .token_key_file
        .clone()
        .unwrap_or_else(|| engines.data_dir().join("lifetime-token.key"));
    let caller_token_file = options
        .caller_token_file
        .clone()
        .unwrap_or_else(|| engines.data_dir().join("caller-token"));
    let signer = secrets::signer_or_new(&key_file)?;
    let callers = secrets::caller_tokens_or_new(&caller_token_file)?;
    let caller_token = token_of_file(&caller_token_file)?;
    let store = Store::connect(store_options).await.map_err(store_error)?;
    let prepared = async {
        let objects = archive_of(options, engines)?;
        if let Some(objects) = &objects {
            archive::check(objects).await?;
        }
        store.migrate().await.map_err(store_error)?;
        let report = find_or_create_topic(&store, &stream).await?;
        tracing::info!(
            topic = stream.topic,
            partitions = report.partitions,
            created = report.created,
            "topic"
        );
        let reader = LogReader::new(&stream).map_err(stream_error)?;
        Ok((reader, report, objects))
    };
    match prepared.await {
        Ok((reader, report, objects)) => Ok(Foundation {
            store,
            stream,
            partitions: report.partitions,
            retention: report.retention,
            objects,
            reader,
            signer,
            callers,
            caller_token_file,
            caller_token,
        }),
        Err(error) => {
            store.close().await;
            Err(error)
        }
    }
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

fn archive_of(options: &StackOptions, engines: &Engines) -> Result<Option<ObjectStore>, Error> {
    if options.archive.is_some() {
        return Ok(options.archive.clone());
    }
    let embedded = engines.archive().map(ObjectStore::new);
    embedded.transpose().map_err(archive::archive_error)
}

fn stream_options(options: &StackOptions, engines: &Engines) -> Result<wakelog_stream::Options, Error> {
    let mut stream = match (&options.brokers, engines.brokers()) {
        (Some(brokers), _) => wakelog_stream::Options::new(brokers, &options.topic),
        (None, Some(brokers)) => {
            let mut stream = wakelog_stream::Options::embedded(brokers, &options.topic);
            stream.partitions = EMBEDDED_PARTITIONS;
            // The embedded broker keeps a group's dead members over a restart, and a member that joins then is never
            // assigned anything. There is one persister in this process and its offsets are in the database, so each
            // start takes a group of its own.
            stream.group = format!("{}-{}", stream.group, uuid::Uuid::new_v4());
            stream
        }
        (None, None) => return Err(Error::failed("the embedded log has no address")),
    };
    stream.client_id = "wakelog-up".to_owned();
    stream.replication = options.replication;
    stream.overrides = options.kafka.clone();
    if let Some(partitions) = options.partitions {
        stream.partitions = partitions;
    }
    if let Some(group) = &options.group {
        stream.group = group.clone();
    }
    Ok(stream)
}

fn store_options(options: &StackOptions, engines: &Engines) -> Result<wakelog_store::Options, Error> {
    match (&options.database_url, engines.database_url()) {
        (Some(url), _) => {
            let mut store = wakelog_store::Options::new(url.0.clone());
            if let Some(connections) = options.database_connections {
                store.max_connections = connections;
            }
            Ok(store)
        }
        (None, Some(url)) => Ok(wakelog_store::Options::single_connection(url)),
        (None, None) => Err(Error::failed("the embedded database has no address")),
    }
}

fn url_of(listener: &TcpListener) -> Result<String, Error> {
    let address = listener
        .local_addr()
        .map_err(|error| Error::io("a listener", &error))?;
    Ok(format!("http://{address}"))
}
