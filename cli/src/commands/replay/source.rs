//! The log and the archive that a database is built from: those that the settings name, else those of a stopped embedded stack.

use wakelog_archive::ObjectStore;
use wakelog_contract::Exit;

use crate::config::Settings;
use crate::exit::Error;
use crate::services::{archive, stream_options};
use crate::up::engines::{Engines, Wanted, stop_after};

/// What a database is built from, open.
pub(super) struct Source {
    pub(super) stream: wakelog_stream::Options,
    /// Absent: the topic must have everything.
    pub(super) objects: Option<ObjectStore>,
    /// Those that run in this process.
    engines: Option<Engines>,
}

impl Source {
    pub(super) async fn open(settings: &Settings, from_archive: bool) -> Result<Self, Error> {
        let configured = match from_archive {
            true => archive::configured(settings)?,
            false => None,
        };
        if settings.brokers.is_some() {
            if from_archive && configured.is_none() {
                return Err(
                    Error::usage("--from-archive needs a bucket, and `s3_bucket` is not set")
                        .or_hint("give --s3-bucket, set WAKELOG_S3_BUCKET or put it into the file"),
                );
            }
            return Ok(Self {
                stream: stream_options(settings)?,
                objects: configured,
                engines: None,
            });
        }
        let engines = start_engines(settings, from_archive && configured.is_none()).await?;
        match on_engines(settings, &engines, configured, from_archive) {
            Ok((stream, objects)) => Ok(Self {
                stream,
                objects,
                engines: Some(engines),
            }),
            Err(error) => {
                engines.stop().await?;
                Err(error)
            }
        }
    }

    /// Closes everything, and hands on how the work came out. Its error goes before one of the closing.
    pub(super) async fn close<T>(self, outcome: Result<T, Error>) -> Result<T, Error> {
        stop_after(self.engines, outcome).await
    }
}

async fn start_engines(settings: &Settings, archive: bool) -> Result<Engines, Error> {
    let data_dir = settings.data_dir()?;
    if !Engines::are_in(&data_dir) {
        return Err(Error::new(
            Exit::NotFound,
            format!("data folder {} holds no embedded stack", data_dir.display()),
        )
        .or_hint("name another with --data-dir, or give --brokers"));
    }
    let wanted = Wanted {
        log: true,
        hot_tail: false,
        archive,
    };
    Engines::start(&data_dir, wanted).await
}

fn on_engines(
    settings: &Settings,
    engines: &Engines,
    configured: Option<ObjectStore>,
    from_archive: bool,
) -> Result<(wakelog_stream::Options, Option<ObjectStore>), Error> {
    let brokers = engines
        .brokers()
        .ok_or_else(|| Error::failed("the embedded engines have no address"))?;
    let objects = match (configured, from_archive) {
        (Some(objects), _) => Some(objects),
        (None, false) => None,
        (None, true) => Some(archive::embedded(engines)?),
    };
    Ok((
        wakelog_stream::Options::embedded(brokers, &settings.topic),
        objects,
    ))
}
