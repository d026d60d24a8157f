//! Which database and which object store: those that the settings name, else those of a stopped embedded stack.

use wakelog_archive::ObjectStore;
use wakelog_contract::Exit;
use wakelog_model::SessionId;
use wakelog_store::Store;

use crate::config::Settings;
use crate::exit::Error;
use crate::services::{archive, connect_store, store_error};
use crate::up::engines::{Engines, Wanted, stop_after};

/// The archive and its manifest, open.
pub(super) struct Place {
    pub(super) store: Store,
    pub(super) objects: ObjectStore,
    /// Those that run in this process.
    engines: Option<Engines>,
}

impl Place {
    pub(super) async fn open(settings: &Settings) -> Result<Self, Error> {
        let configured = archive::configured(settings)?;
        if settings.database_url.is_some() {
            let objects = configured.ok_or_else(no_bucket)?;
            let store = connect_store(settings).await?;
            return Self::check(store, objects, None).await;
        }
        let engines = start_engines(settings, configured.is_none()).await?;
        match Self::on_engines(&engines, configured).await {
            Ok((store, objects)) => Self::check(store, objects, Some(engines)).await,
            Err(error) => {
                engines.stop().await?;
                Err(error)
            }
        }
    }

    async fn on_engines(
        engines: &Engines,
        configured: Option<ObjectStore>,
    ) -> Result<(Store, ObjectStore), Error> {
        let objects = match configured {
            Some(objects) => objects,
            None => archive::embedded(engines)?,
        };
        let url = engines
            .database_url()
            .ok_or_else(|| Error::failed("the embedded database has no address"))?;
        let store = Store::connect(wakelog_store::Options::single_connection(url))
            .await
            .map_err(store_error)?;
        Ok((store, objects))
    }

    async fn check(store: Store, objects: ObjectStore, engines: Option<Engines>) -> Result<Self, Error> {
        let place = Self {
            store,
            objects,
            engines,
        };
        match place.store.check_schema().await {
            Ok(_) => Ok(place),
            Err(error) => place.close(Err(store_error(error))).await,
        }
    }

    /// Refuses a session that was never opened. One that was erased is known.
    pub(super) async fn check_session(&self, session: SessionId) -> Result<(), Error> {
        match self.store.pin(session).await.map_err(store_error)? {
            Some(_) => Ok(()),
            None => Err(Error::new(
                Exit::NotFound,
                format!("there is no session {session}"),
            )),
        }
    }

    /// Closes everything, and hands on how the work came out. Its error goes before one of the closing.
    pub(super) async fn close<T>(self, outcome: Result<T, Error>) -> Result<T, Error> {
        self.store.close().await;
        stop_after(self.engines, outcome).await
    }
}

/// The object store alone, where that is enough.
pub(super) struct Objects {
    pub(super) objects: ObjectStore,
    engines: Option<Engines>,
}

impl Objects {
    pub(super) async fn open(settings: &Settings) -> Result<Self, Error> {
        if let Some(objects) = archive::configured(settings)? {
            return Ok(Self {
                objects,
                engines: None,
            });
        }
        if settings.database_url.is_some() {
            return Err(no_bucket());
        }
        let engines = start_engines(settings, true).await?;
        match archive::embedded(&engines) {
            Ok(objects) => Ok(Self {
                objects,
                engines: Some(engines),
            }),
            Err(error) => {
                engines.stop().await?;
                Err(error)
            }
        }
    }

    pub(super) async fn close<T>(self, outcome: Result<T, Error>) -> Result<T, Error> {
        stop_after(self.engines, outcome).await
    }
}

async fn start_engines(settings: &Settings, archive: bool) -> Result<Engines, Error> {
    let data_dir = settings.data_dir()?;
    if !data_dir.is_dir() {
        return Err(Error::new(
            Exit::NotFound,
            format!("data folder {} does not exist", data_dir.display()),
        )
        .or_hint("name another with --data-dir, or give --database-url and --s3-bucket"));
    }
    let wanted = Wanted {
        log: false,
        hot_tail: true,
        archive,
    };
    Engines::start(&data_dir, wanted).await
}

fn no_bucket() -> Error {
    Error::usage("`s3_bucket` is not set: a database of its own goes with a bucket")
        .or_hint("give --s3-bucket, set WAKELOG_S3_BUCKET or put it into the file")
}
