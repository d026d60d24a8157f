//! The engines of one stack, started and stopped together.

use std::path::PathBuf;

use crate::archive::Archive;
use crate::hot_tail::HotTail;
use crate::log::Log;
use crate::watch::Failures;
use crate::{ArchiveAddress, DataDir, Error};

/// What to start. Any engine may be left out, where an external one takes its place.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of all data.
    pub data_dir: PathBuf,
    /// Whether to start the log.
    pub log: bool,
    /// Whether to start the hot tail.
    pub hot_tail: bool,
    /// Whether to start the archive.
    pub archive: bool,
    /// The log's port on 127.0.0.1; 0 takes a free one.
    pub log_port: u16,
    /// The archive's port on 127.0.0.1; 0 takes a free one.
    pub archive_port: u16,
}

impl Options {
    /// All three engines on free ports.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            log: true,
            hot_tail: true,
            archive: true,
            log_port: 0,
            archive_port: 0,
        }
    }
}

/// Running engines and their locked folder.
///
/// [`stop`](Engines::stop) is the orderly end. A value that is merely dropped stops its engines too, but they may still
/// be closing their files when the folder's lock is released.
#[derive(Debug)]
pub struct Engines {
    log: Option<Log>,
    hot_tail: Option<HotTail>,
    archive: Option<Archive>,
    failures: Failures,
    data_dir: DataDir,
}

impl Engines {
    /// Locks the folder and starts what `options` ask for; each engine answers when this returns.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let folder = options.data_dir.clone();
        let data_dir = tokio::task::spawn_blocking(move || DataDir::lock(folder))
            .await
            .map_err(|error| Error::Io {
                path: options.data_dir.clone(),
                source: std::io::Error::other(error),
            })??;
        let mut engines = Self {
            log: None,
            hot_tail: None,
            archive: None,
            failures: Failures::new(),
            data_dir,
        };
        match engines.start_each(&options).await {
            Ok(()) => Ok(engines),
            Err(error) => {
                if let Err(error) = engines.stop().await {
                    tracing::warn!(%error, "embedded engine did not stop after a failed start");
                }
                Err(error)
            }
        }
    }

    async fn start_each(&mut self, options: &Options) -> Result<(), Error> {
        // The ones with a wished port first: a taken port is the likeliest failure.
        if options.log {
            let folder = self.data_dir.log();
            let log = Log::start(&folder, options.log_port, self.failures.clone());
            self.log = Some(Box::pin(log).await?);
        }
        if options.archive {
            let folder = self.data_dir.archive();
            let archive = Archive::start(&folder, options.archive_port, self.failures.clone());
            self.archive = Some(Box::pin(archive).await?);
        }
        if options.hot_tail {
            let folder = self.data_dir.hot_tail();
            let hot_tail = HotTail::start(&folder, self.failures.clone());
            self.hot_tail = Some(Box::pin(hot_tail).await?);
        }
        if options.log || options.archive || options.hot_tail {
            tracing::info!(
                brokers = self.brokers(),
                database_url = self.database_url(),
                archive = self.archive().map(|archive| archive.endpoint),
                "embedded engines are up"
            );
        }
        Ok(())
    }

    /// The log's bootstrap address, `127.0.0.1:PORT`.
    pub fn brokers(&self) -> Option<String> {
        self.log.as_ref().map(|log| log.address().to_string())
    }

    /// The hot tail's URL. One connection at a time: a second one waits for the first to end, and is refused with
    /// SQLSTATE 53300 after 15 s.
    pub fn database_url(&self) -> Option<String> {
        self.hot_tail.as_ref().map(HotTail::database_url)
    }

    /// The archive's address and keys.
    pub fn archive(&self) -> Option<ArchiveAddress> {
        self.archive.as_ref().map(|archive| archive.address().clone())
    }

    /// The folder.
    pub fn data_dir(&self) -> &DataDir {
        &self.data_dir
    }

    /// Waits for an engine to end by itself, which is [`Error::Ended`]; for ever if none does.
    pub async fn failed(&self) -> Error {
        match (self.failures.failed().await, self.data_dir.lack_of_space()) {
            // A full disk ends an engine, and what the engine says then does not name it.
            (Error::Ended { engine, reason }, Some(lack)) => Error::Ended {
                engine,
                reason: format!("{reason}; {lack}"),
            },
            (error, _) => error,
        }
    }

    /// Stops all engines, each within a bound, and releases the folder. The first error is returned after all were
    /// told to stop.
    pub async fn stop(self) -> Result<(), Error> {
        let Self {
            log,
            hot_tail,
            archive,
            failures: _,
            data_dir,
        } = self;
        let log = async {
            match log {
                Some(log) => log.stop().await,
                None => Ok(()),
            }
        };
        let hot_tail = async {
            match hot_tail {
                Some(hot_tail) => hot_tail.stop().await,
                None => Ok(()),
            }
        };
        let archive = async {
            match archive {
                Some(archive) => archive.stop().await,
                None => Ok(()),
            }
        };
        let (log, hot_tail, archive) = tokio::join!(log, hot_tail, archive);
        drop(data_dir);
        log.and(hot_tail).and(archive)
    }
}
