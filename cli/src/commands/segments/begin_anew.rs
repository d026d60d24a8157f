//! `wakelog segments begin-anew`: the bucket with the states is lost, or is another one now.

use wakelog_contract::Exit;

use super::place::Place;
use crate::config::Settings;
use crate::exit::{Error, with_sources};
use crate::output::print;
use crate::services::archive;

pub(super) async fn run(settings: &Settings) -> Result<Exit, Error> {
    let place = Place::open(settings).await?;
    let begun = begin(&place, &settings.topic).await;
    place.close(begun).await?;
    print("every session is archived again; `wakelog segments verify` says which segments are missing\n")?;
    Ok(Exit::Done)
}

async fn begin(place: &Place, topic: &str) -> Result<(), Error> {
    archive::check(&place.objects).await?;
    wakelog_archiver::begin_anew(&place.store, topic)
        .await
        .map_err(|error| Error::dependency(with_sources(&error)))
}
