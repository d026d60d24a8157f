//! The engine's interface, in the version that the engine speaks.

use anyhow::{Context as _, Result, anyhow};
use testcontainers::bollard::Docker;
use testcontainers::core::client::docker_client_instance;

/// A client that asks for no newer version of the interface than the engine has.
pub(crate) async fn client() -> Result<Docker> {
    let client = docker_client_instance().await?;
    let client = client.negotiate_version().await;
    client.context("no Docker engine answers")
}

/// Has the start of a container speak the engine's version too. By itself it asks for the newest one, and an engine that does not
/// know that refuses every call. Its client can't be had before the start nor be kept without a container: so this is called from
/// within the start, before its first call, and shares the client with it.
pub(crate) fn negotiate_within_a_start() -> Result<()> {
    let negotiation = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(client()).map(drop)
    });
    negotiation
        .join()
        .map_err(|_| anyhow!("the negotiation panicked"))?
}
