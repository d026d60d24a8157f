//! Which engines run in the process, and what is locked.

use std::path::Path;

use crate::exit::Error;

/// Which engines are to run in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) log: bool,
    pub(crate) hot_tail: bool,
    pub(crate) archive: bool,
}

/// Stops what runs in this process, if anything does, and hands on how the work came out. Its error goes before one of the
/// stopping.
pub(crate) async fn stop_after<T>(engines: Option<Engines>, outcome: Result<T, Error>) -> Result<T, Error> {
    let stopped = match engines {
        Some(engines) => engines.stop().await,
        None => Ok(()),
    };
    let done = outcome?;
    stopped.map(|()| done)
}

/// The embedded archive takes any.
#[cfg(feature = "embedded")]
const EMBEDDED_REGION: &str = "us-east-1";

/// Engines in the process, and the data folder that they hold.
#[cfg(feature = "embedded")]
pub(crate) struct Engines(wakelog_embedded::Engines);

#[cfg(feature = "embedded")]
impl Engines {
    /// Whether a folder holds an embedded stack. Nothing is created.
    pub(crate) fn are_in(data_dir: &Path) -> bool {
        wakelog_embedded::DataDir::holds_stack(data_dir)
    }

    /// Locks the folder and starts what is asked for.
    pub(crate) async fn start(data_dir: &Path, wanted: Wanted) -> Result<Self, Error> {
        let mut options = wakelog_embedded::Options::new(data_dir);
        options.log = wanted.log;
        options.hot_tail = wanted.hot_tail;
        options.archive = wanted.archive;
        Box::pin(wakelog_embedded::Engines::start(options))
            .await
            .map(Self)
            .map_err(engine_error)
    }

    pub(crate) fn brokers(&self) -> Option<String> {
        self.0.brokers()
    }

    pub(crate) fn database_url(&self) -> Option<String> {
        self.0.database_url()
    }

    /// The embedded archive.
    pub(crate) fn archive(&self) -> Option<wakelog_archive::Options> {
        let address = self.0.archive()?;
        Some(wakelog_archive::Options {
            endpoint: Some(address.endpoint),
            access_key: Some(address.access_key),
            secret_key: Some(address.secret_key),
            path_style: true,
            ..wakelog_archive::Options::new(EMBEDDED_REGION, address.bucket)
        })
    }

    pub(crate) fn data_dir(&self) -> &Path {
        self.0.data_dir().path()
    }

    /// Waits for an engine to end by itself.
    pub(crate) async fn failed(&self) -> Error {
        engine_error(self.0.failed().await)
    }

    pub(crate) async fn stop(self) -> Result<(), Error> {
        Box::pin(self.0.stop()).await.map_err(engine_error)
    }
}

/// The error of an engine, with what to do about it.
#[cfg(feature = "embedded")]
pub(crate) fn engine_error(error: wakelog_embedded::Error) -> Error {
    use wakelog_embedded::Error as Embedded;
    let hint = match &error {
        Embedded::InUse { .. } => {
            "stop the `wakelog up` that holds it, or use another folder with --data-dir"
        }
        Embedded::NewerVersion { .. } => "use the newer wakelog",
        Embedded::NotWritable { .. } | Embedded::Full { .. } | Embedded::NotAFolder { .. } => {
            "use another folder with --data-dir"
        }
        _ => "`wakelog doctor` looks at every dependency",
    };
    Error::dependency(crate::exit::with_sources(&error)).or_hint(hint)
}

/// Without the feature `embedded` there are no engines: only the folder.
#[cfg(not(feature = "embedded"))]
pub(crate) struct Engines {
    data_dir: std::path::PathBuf,
}

#[cfg(not(feature = "embedded"))]
impl Engines {
    /// [`Engines::start`] says that this build has none.
    pub(crate) fn are_in(_data_dir: &Path) -> bool {
        true
    }

    pub(crate) async fn start(data_dir: &Path, wanted: Wanted) -> Result<Self, Error> {
        if wanted.log || wanted.hot_tail || wanted.archive {
            return Err(Error::usage("this build of wakelog has no embedded engines")
                .or_hint("give --brokers and --database-url"));
        }
        let created =
            crate::discovery::create_private_folder(data_dir).and_then(|()| data_dir.canonicalize());
        let data_dir = created.map_err(|error| Error::io(data_dir.display(), &error))?;
        Ok(Self { data_dir })
    }

    pub(crate) fn brokers(&self) -> Option<String> {
        None
    }

    pub(crate) fn database_url(&self) -> Option<String> {
        None
    }

    pub(crate) fn archive(&self) -> Option<wakelog_archive::Options> {
        None
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    pub(crate) async fn failed(&self) -> Error {
        std::future::pending().await
    }

    pub(crate) async fn stop(self) -> Result<(), Error> {
        Ok(())
    }
}
