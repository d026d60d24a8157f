//! `wakelog config`: the effective configuration, each value with where it came from.

use wakelog_contract::Exit;

use crate::config::Settings;
use crate::exit::Error;
use crate::output::print;

pub(crate) fn run(settings: &Settings) -> Result<Exit, Error> {
    print(&settings.to_toml())?;
    Ok(Exit::Done)
}
