//! `wakelog migrate`: brings a database's schema up to date.

use wakelog_contract::Exit;

use crate::config::Settings;
use crate::exit::Error;
use crate::output::print;
use crate::services::{connect_unguarded, store_error};

pub(crate) async fn run(settings: &Settings) -> Result<Exit, Error> {
    let store = connect_unguarded(settings).await?;
    let migrated = store.migrate().await.map_err(store_error);
    store.close().await;
    migrated?;
    print("the schema is up to date\n")?;
    Ok(Exit::Done)
}
