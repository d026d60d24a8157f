//! One container, from its start to its removal.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use testcontainers::bollard::Docker;
use testcontainers::bollard::query_parameters::{
    ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
};
use testcontainers::core::logs::LogFrame;
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, ContainerRequest, GenericImage, ImageExt as _};

use crate::client::{client, negotiate_within_a_start};
use crate::signals::Signals;

/// What a container is asked to be.
pub(crate) type Request = ContainerRequest<GenericImage>;

/// Its value is the id of the process that has the container.
const LABEL: &str = "wakelog.tests.process";

/// An image may have to be pulled before; this is for the start alone.
const START: Duration = Duration::from_secs(60);

/// How often the container is looked after.
const LOOK: Duration = Duration::from_secs(1);

/// Runs it on the network of the host, until a signal or its own end, and removes it.
pub(crate) async fn run(request: Request) -> Result<()> {
    let mut signals = Signals::catch()?;
    remove_what_the_dead_left(&client().await?).await?;
    let request = request
        .with_label(LABEL, std::process::id().to_string())
        .with_startup_timeout(START)
        .with_log_consumer(say)
        .with_host_config_modifier(|config| {
            config.network_mode = Some("host".to_owned());
            if let Err(error) = negotiate_within_a_start() {
                eprintln!("{error:#}");
            }
        });
    // A signal meanwhile is answered after the start: what is half made could not be removed.
    let container = request.start().await.context("the container does not start")?;
    let ended = tokio::select! {
        () = signals.received() => false,
        () = end_of(&container) => true,
    };
    container.rm().await.context("the container is not removed")?;
    if ended {
        bail!("the container ended by itself");
    }
    Ok(())
}

fn say(frame: &LogFrame) {
    let mut output = std::io::stdout().lock();
    // Nobody may be listening any more.
    output.write_all(frame.bytes()).and_then(|()| output.flush()).ok();
}

async fn end_of(container: &ContainerAsync<GenericImage>) {
    while container.is_running().await.unwrap_or(false) {
        tokio::time::sleep(LOOK).await;
    }
}

/// A process that was killed with SIGKILL has left its container.
async fn remove_what_the_dead_left(client: &Docker) -> Result<()> {
    let with_label = HashMap::from([("label", vec![LABEL])]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&with_label);
    let containers = client.list_containers(Some(options.build())).await?;
    for container in containers {
        let labels = container.labels.unwrap_or_default();
        let is_dead = labels
            .get(LABEL)
            .is_some_and(|owner| !Path::new("/proc").join(owner).exists());
        let Some(id) = container.id.filter(|_| is_dead) else {
            continue;
        };
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true);
        // Another process may be removing it as well.
        client.remove_container(&id, Some(options.build())).await.ok();
    }
    Ok(())
}
