//! `wakelog erase`: a session and its sub-sessions, gone for good.

use std::io::{IsTerminal as _, Write as _};

use serde_json::json;
use wakelog_contract::Exit;
use wakelog_proto::v1::EraseSessionRequest;

use super::{call, connect, session_id};
use crate::args::EraseArgs;
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{print, print_json};

pub(crate) async fn run(settings: &Settings, args: &EraseArgs) -> Result<Exit, Error> {
    let session_id = session_id(&args.session)?;
    if !args.yes {
        confirm(&session_id).await?;
    }
    let connection = connect(settings).await?;
    call(&connection, "erasing the session", |mut sessions| {
        let request = EraseSessionRequest {
            session_id: session_id.clone(),
        };
        async move { sessions.erase_session(request).await }
    })
    .await?;
    if args.json {
        print_json(&json!({ "session_id": session_id, "erased": true }))?;
    } else {
        print(&format!("{session_id} is erased\n"))?;
    }
    Ok(Exit::Done)
}

/// Asks whoever sits there. Nobody: then only --yes will do.
async fn confirm(session_id: &str) -> Result<(), Error> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::usage("an erasure can't be taken back").or_hint("--yes erases without asking"));
    }
    let question = format!("Erase session {session_id} and its sub-sessions for good? Type yes: ");
    let asking = tokio::task::spawn_blocking(move || {
        let mut stderr = std::io::stderr();
        stderr.write_all(question.as_bytes())?;
        stderr.flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        Ok::<String, std::io::Error>(answer)
    });
    let answer = asking.await.map_err(|error| Error::failed(error.to_string()))?;
    let answer = answer.map_err(|error| Error::io("the terminal", &error))?;
    if answer.trim() != "yes" {
        return Err(Error::refused("nothing was erased"));
    }
    Ok(())
}
