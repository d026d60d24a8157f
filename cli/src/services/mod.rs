//! What a service needs to run, alone or with the others: its engines, secrets, listener, supervision, health.
//!
//! | module | decision |
//! |---|---|
//! | `archive` | the object store that the settings name, and the archiver on it |
//! | `alone` | one service as a process of its own |
//! | `database` | what is said of a database's settings |
//! | `engine_errors` | what is said of an engine that is away or wrong, and what to do about it |
//! | `grpc` | which gRPC services share a listener, and in which order they stop |
//! | `health` | when a process is ready |
//! | `http` | /healthz, /readyz, /metrics |
//! | `probe` | how a process finds out that its database or its log is away |
//! | `secrets` | the files with keys and tokens |
//! | `signals` | how a process is asked to stop |
//! | `supervisor` | what happens when a service ends by itself |
//! | `topic` | when the transcript topic may be created |

pub(crate) mod alone;
pub(crate) mod archive;
pub(crate) mod database;
mod engine_errors;
pub(crate) mod grpc;
pub(crate) mod health;
pub(crate) mod http;
pub(crate) mod probe;
pub(crate) mod secrets;
pub(crate) mod signals;
pub(crate) mod supervisor;
pub(crate) mod topic;

use std::net::{SocketAddr, TcpListener};

use wakelog_store::Store;

use crate::config::Settings;
use crate::exit::{Error, with_sources};

pub(crate) use engine_errors::{store_error, stream_error};

/// Where the services listen unless told otherwise.
pub(crate) mod ports {
    pub(crate) const GRPC: u16 = 7420;
    pub(crate) const HTTP: u16 = 7421;
    pub(crate) const RECONSTRUCT_GRPC: u16 = 7422;
    pub(crate) const RECONSTRUCT_HTTP: u16 = 7423;
    pub(crate) const PERSIST_HTTP: u16 = 7425;
    pub(crate) const ARCHIVE_HTTP: u16 = 7427;
}

/// A port on loopback.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Takes a port, or says who may have it.
pub(crate) fn bind(address: SocketAddr, flag: &str) -> Result<TcpListener, Error> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map_err(|error| {
        let taken = error.kind() == std::io::ErrorKind::AddrInUse;
        let message = if taken {
            format!("{address} is taken by another process")
        } else {
            format!("{address}: {error}")
        };
        Error::dependency(message).or_hint(format!(
            "is `wakelog up` running already? Give another address with {flag}"
        ))
    })
}

/// Connects to the database that the settings name, to use what is in it.
pub(crate) async fn connect_store(settings: &Settings) -> Result<Store, Error> {
    connect(settings, true).await
}

/// The same also where a replay has not finished it: to look how it is, or to change its schema.
pub(crate) async fn connect_unguarded(settings: &Settings) -> Result<Store, Error> {
    connect(settings, false).await
}

async fn connect(settings: &Settings, guarded: bool) -> Result<Store, Error> {
    let url = settings.required(&settings.database_url, "database_url")?;
    let mut options = wakelog_store::Options {
        guarded,
        ..wakelog_store::Options::new(url.0.clone())
    };
    if let Some(connections) = settings.database_connections {
        options.max_connections = connections;
    }
    Store::connect(options).await.map_err(store_error)
}

/// The log that the settings name.
pub(crate) fn stream_options(settings: &Settings) -> Result<wakelog_stream::Options, Error> {
    let brokers = settings.required(&settings.brokers, "brokers")?;
    let mut options = wakelog_stream::Options::new(brokers, &settings.topic);
    options.replication = settings.replication;
    options.overrides = settings.kafka.clone();
    if let Some(partitions) = settings.partitions {
        options.partitions = partitions;
    }
    if let Some(group) = &settings.group {
        options.group = group.clone();
    }
    Ok(options)
}

/// Any other error of a service.
pub(crate) fn service_error(name: &str, error: &dyn std::error::Error) -> Error {
    Error::failed(format!("{name}: {}", with_sources(error)))
}
