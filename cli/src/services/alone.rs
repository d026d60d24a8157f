//! One service as a process of its own: `wakelog ingest`, `wakelog persist`, `wakelog reconstruct`, `wakelog archive`.

use std::net::SocketAddr;
use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};
use wakelog_contract::Exit;
use wakelog_store::Store;
use wakelog_stream::LogReader;

use super::grpc::Grpc;
use super::health::Health;
use super::supervisor::supervise;
use super::topic::find_or_create_topic;
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
    let process = Process::start("ingest", settings, ports::HTTP).await?;
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
    let process = Process::start("reconstructor", settings, ports::RECONSTRUCT_HTTP).await?;
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
    let process = Process::start("persister", settings, ports::PERSIST_HTTP).await?;
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
    let process = Process::start("archiver", settings, ports::ARCHIVE_HTTP).await?;
    let checked = async {
        archive::check(&objects).await?;
        archive::check_bucket(&objects, &process.store, &process.stream.topic).await?;
        let reader = LogReader::new(&process.stream).map_err(stream_error)?;
        archive::check_log(&objects, &reader, &process.stream.topic).await?;
        Ok(reader)
    };
    let reader = match checked.await {
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
    async fn start(name: &'static str, settings: &Settings, http_port: u16) -> Result<Self, Error> {
        let mut stream = stream_options(settings)?;
        stream.client_id = format!("wakelog-{name}");
        let http_address = settings.http_listen.unwrap_or(loopback(http_port));
        let listener = bind(http_address, "--http-listen")?;
        let shutdown = signals::shutdown_token()?;
        let health = Health::expecting(&[name]);
        let http_stop = CancellationToken::new();
        let http = tokio::spawn(http::serve(listener, health.clone(), http_stop.clone()));
        let store = connect_store(settings).await?;
        store.check_schema().await.map_err(store_error)?;
        let report = find_or_create_topic(&store, &stream).await?;
        let reader = LogReader::new(&stream).map_err(stream_error)?;
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
