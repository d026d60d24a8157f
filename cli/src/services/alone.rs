//! One service as a process of its own: `wakelog ingest`, `wakelog persist`, `wakelog reconstruct`, `wakelog archive`.

use std::net::SocketAddr;
use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};
use wakelog_archive::ObjectStore;
use wakelog_contract::Exit;
use wakelog_store::{Store, Use};
use wakelog_stream::{LogReader, TopicReport};

use super::database::warn_of_weaknesses;
use super::grpc::Grpc;
use super::health::Health;
use super::supervisor::supervise;
use super::topic::{find_or_create_topic, look_at_topic, short_retention, warn_of_flaws};
use super::{
    archive, bind, connect_store, http, loopback, ports, probe, secrets, service_error, signals, store_error,
    stream_error, stream_options,
};
use crate::config::Settings;
use crate::exit::Error;

/// How long the http pages may take to end.
const HTTP_WAIT: Duration = Duration::from_secs(2);

pub(crate) async fn ingest(settings: &Settings) -> Result<Exit, Error> {
    let key_file = settings.required(&settings.token_key_file, "token_key_file")?;
    let signer = secrets::signer(key_file)?;
    let process = Process::start("ingest", settings, ports::HTTP, Needs::of(Use::Ingest)).await?;
    let grpc = Grpc {
        store: process.store.clone(),
        stream: process.stream.clone(),
        signer,
        ingest: Some(wakelog_ingest::Options::new(&settings.topic)),
        sessions: None,
        objects: None,
    };
    process
        .serve(grpc, settings.listen.unwrap_or(loopback(ports::GRPC)))
        .await
}

pub(crate) async fn reconstruct(settings: &Settings) -> Result<Exit, Error> {
    let key_file = settings.required(&settings.token_key_file, "token_key_file")?;
    let signer = secrets::signer(key_file)?;
    let callers =
        secrets::caller_tokens(settings.required(&settings.caller_token_file, "caller_token_file")?)?;
    let objects = archive::configured(settings)?;
    let needs = Needs {
        reads: objects.as_ref(),
        ..Needs::of(Use::Reconstructor)
    };
    let process = Process::start("reconstructor", settings, ports::RECONSTRUCT_HTTP, needs).await?;
    let grpc = Grpc {
        store: process.store.clone(),
        stream: process.stream.clone(),
        signer,
        ingest: None,
        sessions: Some((wakelog_reconstructor::Options::new(&settings.topic), callers)),
        objects,
    };
    process
        .serve(grpc, settings.listen.unwrap_or(loopback(ports::RECONSTRUCT_GRPC)))
        .await
}

pub(crate) async fn persist(settings: &Settings) -> Result<Exit, Error> {
    let process = Process::start(
        "persister",
        settings,
        ports::PERSIST_HTTP,
        Needs::of(Use::Persister),
    )
    .await?;
    let options = wakelog_persister::Options::new(process.stream.clone());
    let persister = persister(
        options,
        process.store.clone(),
        process.health.clone(),
        process.shutdown.clone(),
    );
    let outcome = persister.await;
    process.end(outcome).await
}

pub(crate) async fn archive(settings: &Settings) -> Result<Exit, Error> {
    settings.required(&settings.s3.bucket, "s3_bucket")?;
    let objects = archive::configured(settings)?.ok_or_else(|| Error::usage("`s3_bucket` is not set"))?;
    let needs = Needs {
        writes: Some(&objects),
        ..Needs::of(Use::Archiver)
    };
    let process = Process::start("archiver", settings, ports::ARCHIVE_HTTP, needs).await?;
    if let Some((short, hint)) = short_retention(process.retention, true) {
        tracing::warn!(topic = process.stream.topic, hint, "topic setting: {short}");
    }
    let reader = match LogReader::new(&process.stream).map_err(stream_error) {
        Ok(reader) => reader,
        Err(error) => return process.end(Err(error)).await,
    };
    let mut stream = process.stream.clone();
    stream.group = format!("{}-archiver", stream.group);
    let options = archive::options(
        &settings.s3,
        &settings.topic,
        wakelog_archiver::Share::Group(stream),
        process.retention,
    );
    let archiver = archive::archiver(
        options,
        process.store.clone(),
        objects,
        reader,
        process.health.clone(),
        process.shutdown.clone(),
    );
    let outcome = archiver.await;
    process.end(outcome).await
}

/// Runs a persister, again whenever it ends.
pub(crate) async fn persister(
    options: wakelog_persister::Options,
    store: Store,
    health: Health,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let seen = health.clone();
    supervise("persister", health, shutdown, move |stop| {
        let service = wakelog_persister::Service::new(options.clone(), store.clone());
        let seen = seen.clone();
        async move {
            let service = service.map_err(|error| service_error("persister", &error))?;
            seen.set_persister(service.status());
            service
                .run(stop)
                .await
                .map_err(|error| service_error("persister", &error))
        }
    })
    .await
}

/// What a service needs besides log and database.
struct Needs<'a> {
    /// What it does in the database.
    of_store: Use,
    /// An archive that it reads.
    reads: Option<&'a ObjectStore>,
    /// An archive that it writes.
    writes: Option<&'a ObjectStore>,
}

impl Needs<'_> {
    fn of(of_store: Use) -> Self {
        Self {
            of_store,
            reads: None,
            writes: None,
        }
    }
}

/// What all of them have: engines that were checked, pages, a way to stop.
struct Process {
    name: &'static str,
    store: Store,
    stream: wakelog_stream::Options,
    /// How long the topic keeps its records; `None`: for ever.
    retention: Option<Duration>,
    health: Health,
    shutdown: CancellationToken,
    probe: DropGuard,
    http: tokio::task::JoinHandle<Result<(), Error>>,
    http_stop: CancellationToken,
}

impl Process {
    /// Everything that the service needs is looked at before anything is made: a start that is refused leaves nothing.
    async fn start(
        name: &'static str,
        settings: &Settings,
        http_port: u16,
        needs: Needs<'_>,
    ) -> Result<Self, Error> {
        let mut stream = stream_options(settings)?;
        stream.client_id = format!("wakelog-{name}");
        let http_address = settings.http_listen.unwrap_or(loopback(http_port));
        let listener = bind(http_address, "--http-listen")?;
        let shutdown = signals::shutdown_token()?;
        let health = Health::expecting(&[name]);
        let http_stop = CancellationToken::new();
        let http = tokio::spawn(http::serve(listener, health.clone(), http_stop.clone()));
        let store = connect_store(settings).await?;
        let prepared = Box::pin(prepare(&store, &stream, &needs)).await;
        let (report, reader) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                store.close().await;
                return Err(error);
            }
        };
        warn_of_flaws(&stream.topic, &report);
        let probe = probe::watch(&health, &store, &reader, &stream.topic);
        tracing::info!(service = name, topic = stream.topic, partitions = report.partitions, http = %http_address, "started");
        Ok(Self {
            name,
            store,
            stream,
            retention: report.retention,
            health,
            shutdown,
            probe,
            http,
            http_stop,
        })
    }

    async fn serve(self, grpc: Grpc, address: SocketAddr) -> Result<Exit, Error> {
        let listener = bind(address, "--listen")?;
        tracing::info!(service = self.name, %address, "serving gRPC");
        let run = supervise(
            self.name,
            self.health.clone(),
            self.shutdown.clone(),
            move |stop| {
                let (grpc, listener) = (grpc.clone(), listener.try_clone());
                async move {
                    let listener = listener.map_err(|error| Error::io("the gRPC listener", &error))?;
                    grpc.run(listener, stop).await
                }
            },
        );
        let outcome = run.await;
        self.end(outcome).await
    }

    async fn end(self, outcome: Result<(), Error>) -> Result<Exit, Error> {
        drop(self.probe);
        self.http_stop.cancel();
        if tokio::time::timeout(HTTP_WAIT, self.http).await.is_err() {
            tracing::debug!("the http pages did not end in time");
        }
        self.store.close().await;
        outcome?;
        tracing::info!(service = self.name, "stopped");
        Ok(Exit::Done)
    }
}

/// Looks at everything, and only then creates the topic if there is none.
async fn prepare(
    store: &Store,
    stream: &wakelog_stream::Options,
    needs: &Needs<'_>,
) -> Result<(TopicReport, LogReader), Error> {
    store.check_schema().await.map_err(store_error)?;
    store.check_rights(&[needs.of_store]).await.map_err(store_error)?;
    store.check_writable().await.map_err(store_error)?;
    warn_of_weaknesses(store).await?;
    let found = look_at_topic(store, stream).await?;
    let reader = LogReader::new(stream).map_err(stream_error)?;
    if let Some(objects) = needs.reads {
        archive::check_for_reading(objects).await?;
    }
    if let Some(objects) = needs.writes {
        archive::check(objects).await?;
        archive::check_bucket(objects, store, &stream.topic).await?;
        archive::check_log(objects, &reader, &stream.topic).await?;
    }
    let report = match found {
        Some(report) => report,
        None => find_or_create_topic(store, stream).await?,
    };
    Ok((report, reader))
}
