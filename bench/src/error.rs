//! Why a benchmark did not come to an end.

use std::io;

/// Why a benchmark did not come to an end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Options(String),
    /// The database refused a statement of the benchmark's own.
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
    /// The hot tail.
    #[error(transparent)]
    Store(#[from] wakelog_store::Error),
    /// The log.
    #[error(transparent)]
    Stream(#[from] wakelog_stream::Error),
    /// The broker refused something of the benchmark's own.
    #[error("the broker: {0}")]
    Kafka(#[from] rdkafka::error::KafkaError),
    /// The bucket, as the services reach it.
    #[error(transparent)]
    Archive(#[from] wakelog_archive::Error),
    /// The object store refused something of the benchmark's own.
    #[error("the object store")]
    Objects(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A client of the services.
    #[error(transparent)]
    Client(Box<wakelog_client::Error>),
    /// A service process.
    #[error("{service}: {reason}")]
    Service {
        /// Which one.
        service: &'static str,
        /// What became of it.
        reason: String,
    },
    /// A file or a process of this machine.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        error: io::Error,
    },
    /// What came out is not what went in: figures of it would mean nothing.
    #[error("a measurement that can't be right: {0}")]
    Wrong(String),
    /// Something did not come in time.
    #[error("{what} did not come within {seconds} s")]
    Late {
        /// What was waited for.
        what: &'static str,
        /// For how long.
        seconds: u64,
    },
    /// Results of an earlier run can't be read, so they can't be kept.
    #[error("results of an earlier run: {0}")]
    Results(String),
    /// A plot could not be drawn.
    #[error("a plot: {0}")]
    Plot(String),
    /// The user has asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub(crate) fn objects(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Objects(error.into())
    }

    pub(crate) fn io(what: impl Into<String>, error: io::Error) -> Self {
        Self::Io {
            what: what.into(),
            error,
        }
    }
}

impl From<wakelog_client::Error> for Error {
    fn from(error: wakelog_client::Error) -> Self {
        Self::Client(Box::new(error))
    }
}

impl From<tonic::Status> for Error {
    fn from(status: tonic::Status) -> Self {
        wakelog_client::Error::from(status).into()
    }
}
