//! `wakelog demo`: a recorded session of a real agent loses its writer and comes back byte for byte.
//!
//! | module | decision |
//! |---|---|
//! | `recording` | what the agent wrote, call by call |
//! | `archive` | what became of superseded entries |
//! | `agent` | the process that writes it, and is killed |
//! | `container` | how such a process is started, watched and killed |
//! | `stage` | how it looks |
//! | `program` | what the user types to run this program again |
//!
//! Nothing is staged but the pauses: the services are the ones of `wakelog up`, the agents are processes that talk gRPC,
//! one of them is killed with SIGKILL, and the persister dies with a transaction open.

pub(crate) mod agent;
mod archive;
mod container;
mod program;
mod recording;
mod stage;

use std::path::Path;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use sha2::{Digest as _, Sha256};
use tonic::Status;
use wakelog_client::{Connection, ReceivedBody, Writer, WriterOptions, new_nonce, receive_body};
use wakelog_contract::Exit;
use wakelog_model::LifetimeId;
use wakelog_proto::v1::{
    ExportSessionRequest, LifetimeGrant, RefusalReason, SessionsResponse, StartAgentSessionRequest,
    StopAgentSessionRequest,
};

use crate::config::Settings;
use crate::exit::Error;
use crate::services::loopback;
use crate::up::stack::{RunningStack, StackOptions};
use container::Container;
use recording::Recording;
use stage::Stage;

/// The call whose entry the persister has in its open transaction when it dies.
const PERSISTER_DIES_AT_CALL: usize = 4;

/// The last call of the first container.
const WRITER_DIES_AFTER_CALL: usize = 8;

/// How long an agent "thinks" between two writes: without a pause there is nothing to watch.
const PAUSE: Duration = Duration::from_millis(250);

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn run(settings: &Settings) -> Result<Exit, Error> {
    let stage = Stage::new();
    let recording = Recording::load().map_err(|error| Error::failed(error.to_string()))?;
    stage.title(&format!(
        "wakelog demo: a session of the oh-my-pi SDK {}, {} recorded storage calls",
        recording.sdk(),
        recording.calls().len()
    ))?;
    let stack = Box::pin(RunningStack::start(stack_options(settings)?)).await?;
    let outcome = Box::pin(play(&stage, &stack)).await;
    let verified = match &outcome {
        Ok(true) => Box::pin(verify(&stage, &stack)).await,
        _ => Ok(true),
    };
    let data_dir = stack.data_dir.clone();
    let stopped = Box::pin(stack.stop()).await;
    let (equal, clean) = (outcome?, verified?);
    stopped?;
    stage.blank()?;
    if !(equal && clean) {
        stage.bad("what came back is not what was acknowledged")?;
        return Ok(Exit::Difference);
    }
    stage.good(&format!("done in {:.1} s", stage.elapsed().as_secs_f64()))?;
    let program = program::name();
    stage.detail(&format!(
        "the session is kept: `{program} up --data-dir {}`, then `{program} sessions ls`",
        data_dir.display()
    ))?;
    Ok(Exit::Done)
}

/// Ports are free ones and nothing is announced: a demo does not get into the way of a stack that is up.
fn stack_options(settings: &Settings) -> Result<StackOptions, Error> {
    Ok(StackOptions {
        data_dir: settings.data_dir()?,
        brokers: settings.brokers.clone(),
        database_url: settings.database_url.clone(),
        database_connections: settings.database_connections,
        topic: settings.topic.clone(),
        group: settings.group.clone(),
        partitions: settings.partitions,
        replication: settings.replication,
        kafka: settings.kafka.clone(),
        s3: settings.s3.clone(),
        archive: crate::services::archive::configured(settings)?,
        listen: loopback(0),
        http_listen: None,
        token_key_file: settings.token_key_file.clone(),
        caller_token_file: settings.caller_token_file.clone(),
    })
}

async fn play(stage: &Stage, stack: &RunningStack) -> Result<bool, Error> {
    stage.step(&format!(
        "log, hot tail and services are up in {}",
        stack.data_dir.display()
    ))?;
    let containers = tempfile::tempdir().map_err(|error| Error::io("a folder for the containers", &error))?;
    let connection = Connection::connect(&stack.endpoint, Some(stack.caller_token.clone())).await?;

    let (first, _) = start(&connection, "container-a", "").await?;
    let session_id = first.session_id.clone();
    stage.step(&format!(
        "session {session_id} is open, container A holds lifetime {}",
        first.generation
    ))?;
    stage.blank()?;
    let file_a = containers.path().join("container-a.jsonl");
    let mut container_a =
        Container::start(&stack.endpoint, &first, &file_a, 0, Some(WRITER_DIES_AFTER_CALL))?;
    let mut applied_when_killed = None;
    loop {
        let played = container_a
            .next()
            .await?
            .ok_or_else(|| Error::failed("container A ended by itself"))?;
        stage.played("A", &played)?;
        if played.call + 1 == PERSISTER_DIES_AT_CALL {
            kill_persister_at_its_next_commit()?;
        }
        if played.call == PERSISTER_DIES_AT_CALL {
            applied_when_killed = Some(Instant::now());
            stage.blow("the persister is killed with this entry in an open transaction; the log goes on acknowledging")?;
        }
        if played.call == WRITER_DIES_AFTER_CALL {
            break;
        }
    }
    let pid = container_a.kill().await?;
    stage.blow(&format!("container A is killed: SIGKILL to process {pid}"))?;
    let had = std::fs::read(&file_a).map_err(|error| Error::io(file_a.display(), &error))?;
    let last_acked = (WRITER_DIES_AFTER_CALL + 1) as u64;
    wait_applied(stack, &first, last_acked).await?;
    if let Some(since) = applied_when_killed {
        stage.detail(&format!(
            "the persister is back and has caught up with the log, {:.1} s after it died",
            since.elapsed().as_secs_f64()
        ))?;
    }
    stage.blank()?;

    let resumed_at = Instant::now();
    let file_b = containers.path().join("container-b.jsonl");
    let (second, body) = resume(&connection, "container-b", &session_id, &file_b).await?;
    stage.step(&format!(
        "container B resumes: lifetime {}, {} bytes (entries {} to {}) in {:.0} ms",
        second.generation,
        body.length,
        body.first_entry_seq,
        body.last_entry_seq,
        resumed_at.elapsed().as_secs_f64() * 1000.0
    ))?;
    let came = std::fs::read(&file_b).map_err(|error| Error::io(file_b.display(), &error))?;
    if !compare(
        stage,
        [("the file that A had", &had), ("the file that came to B", &came)],
    )? {
        return Ok(false);
    }
    if !zombie_is_refused(stage, &connection, &first).await? {
        return Ok(false);
    }
    stage.blank()?;

    let mut container_b = Container::start(
        &stack.endpoint,
        &second,
        &file_b,
        WRITER_DIES_AFTER_CALL + 1,
        None,
    )?;
    while let Some(played) = container_b.next().await? {
        stage.played("B", &played)?;
    }
    container_b.wait().await?;
    stop(&connection, &second).await?;
    stage.step("container B is done and ends its lifetime")?;
    stage.blank()?;

    archive::show_segments(stage, stack, &session_id).await?;
    let file_c = containers.path().join("container-c.jsonl");
    let (third, _, untouched) =
        archive::resume_without_archive(stage, stack, &connection, &session_id, &file_c).await?;
    if !untouched {
        return Ok(false);
    }
    stop(&connection, &third).await?;
    let came = std::fs::read(&file_c).map_err(|error| Error::io(file_c.display(), &error))?;

    let file_b = std::fs::read(&file_b).map_err(|error| Error::io(file_b.display(), &error))?;
    let exported = export(&connection, &session_id).await?;
    compare(
        stage,
        [
            ("the file that B has", &file_b),
            ("the file that came to C", &came),
            ("the file exported from the store", &exported),
            ("the file that the SDK itself left", Recording::final_file()),
        ],
    )
}

#[cfg(feature = "failpoints")]
fn kill_persister_at_its_next_commit() -> Result<(), Error> {
    fail::cfg("persister::before_commit", "1*return->off").map_err(Error::failed)
}

#[cfg(not(feature = "failpoints"))]
fn kill_persister_at_its_next_commit() -> Result<(), Error> {
    Err(Error::usage(
        "this build has no failpoints, so the demo can't kill its persister",
    ))
}

/// Starts or resumes a session; the stream that comes back still holds the body.
async fn start(
    connection: &Connection,
    container: &str,
    resume_session_id: &str,
) -> Result<(LifetimeGrant, tonic::Streaming<SessionsResponse>), Error> {
    let request = StartAgentSessionRequest {
        container_name: container.to_owned(),
        initial_prompt: String::new(),
        resume_session_id: resume_session_id.to_owned(),
        request_id: format!("demo-{}", uuid::Uuid::new_v4()),
    };
    let mut sessions = connection.sessions();
    let mut answer = within(sessions.start_agent_session(request)).await??.into_inner();
    let first = within(answer.message()).await??;
    let lifetime = first.and_then(|message| message.lifetime);
    Ok((
        lifetime.ok_or_else(|| Error::failed("the answer has no lifetime"))?,
        answer,
    ))
}

async fn resume(
    connection: &Connection,
    container: &str,
    session_id: &str,
    file: &Path,
) -> Result<(LifetimeGrant, ReceivedBody), Error> {
    let (lifetime, answer) = start(connection, container, session_id).await?;
    let chunks = answer.map(|message| {
        message.and_then(|message| {
            message
                .resume_body
                .ok_or_else(|| Status::internal("a message without a body"))
        })
    });
    let mut body = Vec::new();
    let received = receive_body(chunks, &mut body).await?;
    std::fs::write(file, body).map_err(|error| Error::io(file.display(), &error))?;
    Ok((lifetime, received))
}

async fn export(connection: &Connection, session_id: &str) -> Result<Vec<u8>, Error> {
    let request = ExportSessionRequest {
        session_id: session_id.to_owned(),
    };
    let answer = within(connection.sessions().export_session(request))
        .await??
        .into_inner();
    let chunks = answer.map_ok(|message| message.resume_body.unwrap_or_default());
    let mut body = Vec::new();
    receive_body(chunks, &mut body).await?;
    Ok(body)
}

async fn stop(connection: &Connection, lifetime: &LifetimeGrant) -> Result<(), Error> {
    let request = StopAgentSessionRequest {
        session_id: lifetime.session_id.clone(),
        lifetime_id: lifetime.lifetime_id.clone(),
    };
    within(connection.sessions().stop_agent_session(request)).await??;
    Ok(())
}

/// The killed container's lifetime must be of no use to anyone any more.
async fn zombie_is_refused(
    stage: &Stage,
    connection: &Connection,
    first: &LifetimeGrant,
) -> Result<bool, Error> {
    let options = WriterOptions {
        give_up_after: PATIENCE,
        ..WriterOptions::default()
    };
    let attempt = async {
        let mut writer = Writer::open(connection.relays(), first.clone(), new_nonce(), options).await?;
        writer.append("a line from the grave\n".into(), false).await?;
        writer.drain().await
    };
    match attempt.await {
        Err(refused) if refused.refusal_reason() == Some(RefusalReason::Superseded) => {
            stage.good("a line that container A's lifetime still sends is refused: superseded")?;
            Ok(true)
        }
        Err(other) => Err(other.into()),
        Ok(acked) => {
            stage.bad(&format!(
                "container A's lifetime still writes: entry {} was acknowledged",
                acked.entry_seq
            ))?;
            Ok(false)
        }
    }
}

async fn wait_applied(stack: &RunningStack, lifetime: &LifetimeGrant, entry_seq: u64) -> Result<(), Error> {
    let id =
        LifetimeId::from_slice(&lifetime.lifetime_id).map_err(|error| Error::failed(error.to_string()))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let cursors = stack.store.lifetime_cursors(&stack.stream.topic, &[id]).await;
        let cursors = cursors.map_err(crate::services::store_error)?;
        if cursors
            .first()
            .is_some_and(|cursor| cursor.applied_seq >= entry_seq)
        {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Error::failed(format!(
                "entry {entry_seq} was not applied within {PATIENCE:?}"
            )));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn compare<const N: usize>(stage: &Stage, files: [(&str, &[u8]); N]) -> Result<bool, Error> {
    for (what, bytes) in files {
        stage.detail(&format!(
            "{what:<34} {:>5} B  sha256 {}",
            bytes.len(),
            hex::encode(Sha256::digest(bytes))
        ))?;
    }
    let equal = files.windows(2).all(|pair| pair[0].1 == pair[1].1);
    if equal {
        stage.good("equal, byte for byte")?;
    } else {
        stage.bad("they differ")?;
    }
    Ok(equal)
}

/// Folds the whole log again and compares.
async fn verify(stage: &Stage, stack: &RunningStack) -> Result<bool, Error> {
    let objects = stack.objects.as_ref();
    let topic = &stack.stream.topic;
    let verified = wakelog_persister::verify::verify(&stack.store, objects, &stack.reader, topic, |_| {});
    let report = verified
        .await
        .map_err(|error| Error::failed(crate::exit::with_sources(&error)))?;
    if report.is_equal() {
        stage.good("verify: hot tail and archive equal a fold of the whole log")?;
    } else {
        stage.bad("verify: hot tail and archive differ from a fold of the log")?;
    }
    Ok(report.is_equal())
}

async fn within<T>(call: impl Future<Output = T>) -> Result<T, Error> {
    tokio::time::timeout(PATIENCE, call)
        .await
        .map_err(|_| Error::dependency(format!("no answer within {PATIENCE:?}")))
}
