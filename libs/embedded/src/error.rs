//! What can go wrong with the engines and their folder.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One of the three engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// The Kafka broker.
    Log,
    /// The Postgres database.
    HotTail,
    /// The S3 server.
    Archive,
}

impl fmt::Display for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Log => "log",
            Self::HotTail => "hot tail",
            Self::Archive => "archive",
        })
    }
}

/// A failure of the engines or of their folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process, or another stack of this one, holds the folder.
    #[error("data folder {path} is in use by another wakelog process", path = path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A newer wakelog wrote the folder.
    #[error("data folder {path} has format {found}, this wakelog knows up to {known}", path = path.display())]
    NewerVersion {
        /// The folder.
        path: PathBuf,
        /// The format number found.
        found: u64,
        /// The newest format number known.
        known: u64,
    },
    /// The file VERSION holds no format number.
    #[error("data folder {path} has no readable format number in its file VERSION", path = path.display())]
    UnreadableVersion {
        /// The folder.
        path: PathBuf,
    },
    /// The folder can't be written: read-only file system or missing permission.
    #[error("data folder {path} is not writable: {source}", path = path.display())]
    NotWritable {
        /// The folder, or what in it was to be written.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The disk (or the quota) is full, or nearly so.
    #[error("disk of data folder {path} is full: {free} bytes are free, {needed} are needed", path = path.display())]
    Full {
        /// The folder, or what in it was to be written.
        path: PathBuf,
        /// Free bytes.
        free: u64,
        /// Needed bytes.
        needed: u64,
    },
    /// The path, or a part of it, is something else than a folder.
    #[error("{path} is not a folder", path = path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// Any other failure of the file system.
    #[error("data folder: {path}: {source}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The asked port of the loopback address is taken.
    #[error("port {port} on 127.0.0.1 is taken")]
    PortTaken {
        /// The port.
        port: u16,
    },
    /// An engine did not start.
    #[error("embedded {engine} did not start: {reason}")]
    NotStarted {
        /// Which.
        engine: Engine,
        /// What it said.
        reason: String,
    },
    /// An engine started and does not answer.
    #[error("embedded {engine} gave no answer within {waited:?}")]
    NotReady {
        /// Which.
        engine: Engine,
        /// How long it was waited for.
        waited: Duration,
    },
    /// An engine ended, or stopped serving, by itself.
    #[error("embedded {engine} ended: {reason}")]
    Ended {
        /// Which.
        engine: Engine,
        /// What is known.
        reason: String,
    },
    /// An engine did not stop in time.
    #[error("embedded {engine} did not stop within {waited:?}")]
    NotStopped {
        /// Which.
        engine: Engine,
        /// How long it was waited for.
        waited: Duration,
    },
}

impl Error {
    pub(crate) fn not_started(engine: Engine, reason: impl fmt::Display) -> Self {
        Self::NotStarted {
            engine,
            reason: reason.to_string(),
        }
    }

    /// Sorts an error of the file system into what a user can do about it.
    pub(crate) fn of_file(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Self::NotWritable { path, source }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full {
                path,
                free: 0,
                needed: crate::NEEDED_FREE_BYTES,
            },
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => Self::NotAFolder { path },
            _ => Self::Io { path, source },
        }
    }

    /// The error of a listener that could not be bound.
    pub(crate) fn of_bind(engine: Engine, port: u16, source: &io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::PortTaken { port },
            _ => Self::not_started(engine, source),
        }
    }
}
