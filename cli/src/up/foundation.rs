//! What a stack stands on: engines that were looked at, tables, the topic, secrets.

use std::path::PathBuf;
use std::time::Duration;

use wakelog_archive::ObjectStore;
use wakelog_contract::{CallerTokens, TokenSigner};
use wakelog_store::{Store, Use};
use wakelog_stream::LogReader;

use super::engines::Engines;
use super::stack::StackOptions;
use crate::commands::token_of_file;
use crate::exit::Error;
use crate::services::database::warn_of_weaknesses;
use crate::services::topic::{
    find_or_create_topic, look_at_log, look_at_topic, short_retention, warn_of_flaws,
};
use crate::services::{archive, secrets, store_error, stream_error};

/// Partitions of the topic on an embedded log.
const EMBEDDED_PARTITIONS: i32 = 4;

/// The engines with what was made on them.
pub(super) struct Foundation {
    pub(super) store: Store,
    pub(super) stream: wakelog_stream::Options,
    pub(super) partitions: i32,
    pub(super) retention: Option<Duration>,
    pub(super) objects: Option<ObjectStore>,
    pub(super) reader: LogReader,
    pub(super) signer: TokenSigner,
    pub(super) callers: CallerTokens,
    pub(super) caller_token_file: PathBuf,
    pub(super) caller_token: String,
}

/// Looks at everything that is needed, and only then makes tables and the topic: a start that is refused leaves nothing in
/// engines of the user's own.
pub(super) async fn lay_foundation(options: &StackOptions, engines: &Engines) -> Result<Foundation, Error> {
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
        look_at_engines(&store, &stream).await?;
        store.migrate().await.map_err(store_error)?;
        store.check_rights(&Use::ALL).await.map_err(store_error)?;
        // Of the embedded database the banner says it, and nobody could set it otherwise.
        if options.database_url.is_some() {
            warn_of_weaknesses(&store).await?;
        }
        let report = find_or_create_topic(&store, &stream).await?;
        tracing::info!(
            topic = stream.topic,
            partitions = report.partitions,
            created = report.created,
            "topic"
        );
        warn_of_flaws(&stream.topic, &report);
        if let Some((short, hint)) = short_retention(report.retention, objects.is_some()) {
            tracing::warn!(topic = stream.topic, hint, "topic setting: {short}");
        }
        let reader = LogReader::new(&stream).map_err(stream_error)?;
        Ok((reader, report, objects))
    };
    match Box::pin(prepared).await {
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

/// Whether the tables could be made, and the topic, as far as they are not there.
async fn look_at_engines(store: &Store, stream: &wakelog_stream::Options) -> Result<(), Error> {
    store.check_migratable().await.map_err(store_error)?;
    let looked = match store.check_schema().await {
        Ok(()) => {
            store.check_rights(&Use::ALL).await.map_err(store_error)?;
            look_at_topic(store, stream).await
        }
        Err(_) => look_at_log(stream).await,
    };
    looked.map(drop)
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
