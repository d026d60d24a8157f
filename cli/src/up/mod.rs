//! `wakelog up`: everything in one process.
//!
//! | module | decision |
//! |---|---|
//! | `engines` | which engines run in the process, and what is locked |
//! | `foundation` | what is looked at before anything is made |
//! | `stack` | what is started in which order, and stopped in which |

pub(crate) mod engines;
mod foundation;
pub(crate) mod stack;

use wakelog_contract::Exit;

use crate::config::Settings;
use crate::discovery::{self, Announced, Announcement, Announcing};
use crate::exit::Error;
use crate::output::print;
use crate::services::{archive, loopback, ports, signals};
use stack::{RunningStack, StackOptions};

pub(crate) async fn run(settings: &Settings) -> Result<Exit, Error> {
    let options = StackOptions {
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
        archive: archive::configured(settings)?,
        listen: settings.listen.unwrap_or(loopback(ports::GRPC)),
        http_listen: Some(settings.http_listen.unwrap_or(loopback(ports::HTTP))),
        token_key_file: settings.token_key_file.clone(),
        caller_token_file: settings.caller_token_file.clone(),
    };
    let shutdown = signals::shutdown_token()?;
    let starting = Box::pin(RunningStack::start(options));
    let stack = tokio::select! {
        started = starting => started?,
        () = shutdown.cancelled() => return Err(Error::failed("stopped before everything was started")),
    };
    let announced = if settings.discovery {
        announce(settings, &stack)?
    } else {
        None
    };
    print(&listening(&stack))?;
    let failure = tokio::select! {
        () = shutdown.cancelled() => None,
        failure = stack.failed() => Some(failure),
    };
    if let Some(failure) = &failure {
        tracing::error!(error = %failure, "an engine ended, stopping");
    }
    let stopped = Box::pin(stack.stop()).await;
    if let Some(announced) = announced {
        announced.withdraw()?;
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    stopped?;
    tracing::info!("stopped");
    Ok(Exit::Done)
}

fn announce(settings: &Settings, stack: &RunningStack) -> Result<Option<Announced>, Error> {
    let Some(state_dir) = discovery::state_dir() else {
        tracing::warn!("neither XDG_STATE_HOME nor HOME is set: clients need --server and --token-file");
        return Ok(None);
    };
    let announcement = Announcement {
        endpoint: stack.endpoint.clone(),
        caller_token_file: stack.caller_token_file.clone(),
        data_dir: stack.data_dir.clone(),
        pid: std::process::id(),
        http_endpoint: stack.http_endpoint.clone(),
        embedded_log: settings.brokers.is_none(),
        embedded_database: settings.database_url.is_none(),
    };
    match discovery::announce(&state_dir, &announcement)? {
        Announcing::Ours(announced) => Ok(Some(announced)),
        Announcing::Theirs(theirs) => {
            tracing::warn!(
                announced = theirs.map(|theirs| theirs.endpoint),
                "another stack of this user stays announced: clients of this one need --server and --token-file"
            );
            Ok(None)
        }
    }
}

fn listening(stack: &RunningStack) -> String {
    let http = stack.http_endpoint.as_deref().map_or(String::new(), |http| {
        format!("health     {http}/healthz {http}/readyz\nmetrics    {http}/metrics\n")
    });
    let durability = if stack.is_embedded {
        "\nThe embedded engines survive a crash of the process, not a power cut: they do not sync to disk on every commit.\n"
    } else {
        ""
    };
    format!(
        "wakelog is up\ngrpc       {}\n{http}log        {} (Kafka protocol, topic {})\ndata       {}\ntoken file {}\n{durability}",
        stack.endpoint,
        stack.stream.brokers,
        stack.stream.topic,
        stack.data_dir.display(),
        stack.caller_token_file.display(),
    )
}
