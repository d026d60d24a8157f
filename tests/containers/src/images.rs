//! What the images of the engines are asked to do. They listen on loopback, on the host's network and on ports of the test's
//! choice: so it is the same on a machine where nothing may listen elsewhere, and no port has to be asked for.

use std::os::unix::fs::MetadataExt as _;

use anyhow::{Context as _, Result};
use testcontainers::core::Mount;
use testcontainers::{GenericImage, ImageExt as _};

use crate::container::Request;

fn image(name: &str) -> GenericImage {
    match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => GenericImage::new(name, tag),
        _ => GenericImage::new(name, "latest"),
    }
}

/// A broker that is all there is.
pub(crate) fn kafka(image_name: &str, port: u16, controller_port: u16) -> Request {
    let voters = format!("1@127.0.0.1:{controller_port}");
    let listeners = format!("PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}");
    let advertised = format!("PLAINTEXT://127.0.0.1:{port}");
    let settings = [
        ("KAFKA_PROCESS_ROLES", "broker,controller"),
        ("KAFKA_NODE_ID", "1"),
        ("KAFKA_CONTROLLER_QUORUM_VOTERS", voters.as_str()),
        ("KAFKA_LISTENERS", listeners.as_str()),
        ("KAFKA_ADVERTISED_LISTENERS", advertised.as_str()),
        ("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER"),
        (
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        ),
        ("KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR", "1"),
        ("KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS", "8"),
        ("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1"),
        ("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1"),
        ("KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR", "1"),
        ("KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR", "1"),
        ("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "0"),
        ("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false"),
        ("KAFKA_HEAP_OPTS", "-Xmx768m"),
        ("KAFKA_JVM_PERFORMANCE_OPTS", "-XX:+UseSerialGC"),
    ];
    let request = Request::from(image(image_name));
    settings.into_iter().fold(request, |request, (name, value)| {
        request.with_env_var(name, value)
    })
}

/// A database server with these settings, as `name=value`.
pub(crate) fn postgres(image_name: &str, port: u16, settings: &[String]) -> Request {
    let fixed = [
        format!("port={port}"),
        "listen_addresses=127.0.0.1".to_owned(),
        "dynamic_shared_memory_type=mmap".to_owned(),
        "shared_buffers=256MB".to_owned(),
        "max_connections=200".to_owned(),
        "log_min_messages=warning".to_owned(),
    ];
    let settings = fixed.iter().chain(settings);
    let settings = settings.flat_map(|setting| ["-c".to_owned(), setting.clone()]);
    image(image_name)
        .with_env_var("POSTGRES_USER", "wakelog")
        .with_env_var("POSTGRES_HOST_AUTH_METHOD", "trust")
        .with_env_var("POSTGRES_INITDB_ARGS", "-E UTF8 --locale=C")
        .with_cmd(std::iter::once("postgres".to_owned()).chain(settings))
}

/// An S3 server (VersityGW) on a folder of the host's, where tests look at its objects.
pub(crate) fn s3(image_name: &str, port: u16, folder: &str) -> Result<Request> {
    let key = |name: &str| std::env::var(name).with_context(|| name.to_owned());
    // Files of root's would be in the way of whoever removes the folder.
    let owner = std::fs::metadata(folder).with_context(|| folder.to_owned())?;
    Ok(image(image_name)
        .with_env_var("ROOT_ACCESS_KEY", key("ROOT_ACCESS_KEY")?)
        .with_env_var("ROOT_SECRET_KEY", key("ROOT_SECRET_KEY")?)
        .with_user(format!("{}:{}", owner.uid(), owner.gid()))
        .with_mount(Mount::bind_mount(folder, "/data"))
        .with_cmd(["--port", &format!("127.0.0.1:{port}"), "posix", "/data"]))
}
