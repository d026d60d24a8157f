//! `wakelog segments`: the archive's objects, for an administrator.
//!
//! | module | decision |
//! |---|---|
//! | `place` | which database and which object store |
//! | `ls` | what the manifest has |
//! | `cat` | the bytes of a segment |
//! | `verify` | whether all of it is there and right, and what nothing records |
//! | `begin_anew` | that the bucket with the states is lost, or another one |

mod begin_anew;
mod cat;
mod ls;
mod place;
mod verify;

use wakelog_contract::Exit;
use wakelog_model::SessionId;

use crate::args::SegmentsCommand;
use crate::config::Settings;
use crate::exit::Error;

pub(crate) async fn run(settings: &Settings, command: &SegmentsCommand) -> Result<Exit, Error> {
    match command {
        SegmentsCommand::Ls(args) => ls::run(settings, args).await,
        SegmentsCommand::Cat(args) => cat::run(settings, args).await,
        SegmentsCommand::Verify(args) => verify::run(settings, args).await,
        SegmentsCommand::BeginAnew(_) => begin_anew::run(settings).await,
    }
}

fn parse_session(text: &str) -> Result<SessionId, Error> {
    text.parse()
        .map_err(|error: wakelog_model::Error| Error::usage(error.to_string()))
}
