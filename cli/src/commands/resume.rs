//! `wakelog resume`: binds a lifetime and writes the session's file; `--at` is another thing, see `fork`.

use futures::StreamExt as _;
use serde_json::json;
use tonic::{Status, Streaming};
use wakelog_contract::Exit;
use wakelog_proto::v1::{
    LifetimeGrant, RefusalReason, ResumeBody, SessionsResponse, StartAgentSessionRequest,
};

use super::received_file::ReceivedFile;
use super::writer_state::WriterState;
use super::{call, connect, incomplete, session_id};
use crate::args::ResumeArgs;
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{print, print_json, progress};

pub(crate) async fn run(settings: &Settings, args: &ResumeArgs) -> Result<Exit, Error> {
    let session_id = session_id(&args.session)?;
    if args.out.as_os_str() == "-" {
        // What was printed can't be taken back if the digest at its end is wrong, and the bind can't be undone.
        return Err(
            Error::usage("a resume needs a file, it does not write to the standard output")
                .or_hint("`wakelog export` does, and binds nothing"),
        );
    }
    if let Some(at) = args.at {
        return super::fork::run(settings, args, at).await;
    }
    let file = ReceivedFile::create(&args.out, args.force)?;
    let mut state = WriterState::open(&session_id)?;
    let connection = connect(settings).await?;
    let request_id = args
        .request_id
        .clone()
        .unwrap_or_else(|| format!("resume-{}", uuid::Uuid::new_v4()));
    let request = StartAgentSessionRequest {
        container_name: args.container.clone(),
        initial_prompt: String::new(),
        resume_session_id: session_id.clone(),
        request_id: request_id.clone(),
    };
    // A name that was used before stands for the resume of that time, which somebody has superseded.
    let used_up = |error: Error| match args.request_id {
        Some(_) => error.with_hint_on(
            RefusalReason::Superseded,
            "another resume came after this one: use another --request-id, or none",
        ),
        None => error,
    };
    let mut answer = call(&connection, "resuming the session", |mut sessions| {
        let request = request.clone();
        async move { sessions.start_agent_session(request).await }
    })
    .await
    .map_err(used_up)?;
    let same_again =
        || format!("the session is bound to this resume; `--request-id {request_id}` goes on with it");
    let broken = |error: Error| used_up(error).at(connection.endpoint()).or_hint(same_again());
    let lifetime = first_message(&mut answer).await.map_err(broken)?;
    // Who resumed a session is the one who may append to it.
    state.remember(&lifetime.lifetime_id)?;
    let bar = progress("resume", None);
    let body = file.receive(body_of(answer), &bar).await.map_err(broken)?;
    bar.finish_and_clear();
    if args.json {
        print_json(&json!({
            "session_id": session_id,
            "request_id": request_id,
            "lifetime_id": hex::encode(&lifetime.lifetime_id),
            "generation": lifetime.generation,
            "length": body.length,
            "sha256": hex::encode(body.sha256),
            "first_entry_seq": body.first_entry_seq,
            "last_entry_seq": body.last_entry_seq,
            "file": args.out.to_string_lossy(),
        }))?;
    } else {
        print(&format!(
            "{}: {} bytes, generation {}, sha256 {}\n",
            args.out.display(),
            body.length,
            lifetime.generation,
            hex::encode(body.sha256)
        ))?;
    }
    Ok(Exit::Done)
}

async fn first_message(answer: &mut Streaming<SessionsResponse>) -> Result<LifetimeGrant, Error> {
    let first = tokio::time::timeout(std::time::Duration::from_secs(60), answer.message()).await;
    let first = first.map_err(|_| Error::dependency("the server did not begin within 60 s"))??;
    first
        .and_then(|message| message.lifetime)
        .ok_or_else(|| incomplete("the lifetime"))
}

fn body_of(answer: Streaming<SessionsResponse>) -> impl futures::Stream<Item = Result<ResumeBody, Status>> {
    answer.map(|message| {
        message.and_then(|message| {
            message
                .resume_body
                .ok_or_else(|| Status::internal("a message of a resume carries no body"))
        })
    })
}
