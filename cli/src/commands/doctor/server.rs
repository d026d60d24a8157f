//! The server that clients use: whether it answers, takes the token, and is ready.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use wakelog_client::Connection;
use wakelog_proto::v1::ListSessionsRequest;

use super::Finding;
use crate::commands::{Target, announced, relay_error, with_relays};
use crate::config::Settings;
use crate::exit::Error;
use crate::services::{loopback, ports};

const SERVER: &str = "server";
const RELAY: &str = "relay";
const READINESS: &str = "readiness";

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of a page that are read.
const PAGE_BYTES: u64 = 16 * 1024;

pub(super) async fn server(settings: &Settings) -> Vec<Finding> {
    let target = match Target::find(settings) {
        Ok(target) => target,
        Err(error) => return vec![Finding::error(SERVER, error)],
    };
    let servers = target.server.split(',').map(str::trim).map(|address| Target {
        server: address.to_owned(),
        token: target.token.clone(),
    });
    let mut findings = Vec::new();
    let mut relays_seen = false;
    for server in servers {
        let connection = match server.connect().await {
            Ok(connection) => connection,
            Err(error) => {
                findings.push(Finding::error(SERVER, error));
                continue;
            }
        };
        findings.push(answers(&connection).await);
        if !relays_seen {
            relays_seen = true;
            findings.extend(relays(settings, connection).await);
        }
    }
    findings
}

/// Whether one server answers and takes the token.
async fn answers(connection: &Connection) -> Finding {
    let address = connection.endpoint();
    let mut sessions = connection.sessions();
    let request = ListSessionsRequest {
        page_size: 1,
        ..ListSessionsRequest::default()
    };
    match tokio::time::timeout(PATIENCE, sessions.list_sessions(request)).await {
        Ok(Ok(_)) => Finding::ok(SERVER, format!("{address} answers and takes the token")),
        Ok(Err(status)) => Finding::error(SERVER, Error::from(status).while_doing(address)),
        Err(_) => Finding::fail(
            SERVER,
            format!("{address} gave no answer within {PATIENCE:?}"),
            "look at its logs and at its /readyz",
        ),
    }
}

/// Whether the relays take entries: those that are named, else the server itself.
async fn relays(settings: &Settings, connection: Connection) -> Vec<Finding> {
    let connection = match with_relays(settings, connection) {
        Ok(connection) => connection,
        Err(error) => return vec![Finding::error(RELAY, error)],
    };
    let checked = connection.check_relays().await.into_iter();
    checked
        .map(|(address, outcome)| match outcome {
            Ok(()) => Finding::ok(RELAY, format!("{address} takes entries")),
            Err(error) => Finding::error(RELAY, relay_error(&address, error)),
        })
        .collect()
}

pub(super) async fn readiness(settings: &Settings) -> Vec<Finding> {
    let address = pages_of(settings);
    let answer = match tokio::time::timeout(PATIENCE, ask(address)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return vec![not_asked(address, &error.to_string())],
        Err(_) => return vec![not_asked(address, "no answer")],
    };
    let finding = match read_answer(&answer) {
        Some((200, _)) => Finding::ok(READINESS, format!("http://{address}/readyz says ready")),
        Some((_, obstacles)) => Finding::fail(
            READINESS,
            format!("http://{address}/readyz: {}", obstacles.replace('\n', "; ")),
            "its logs say more; a stopped partition goes on only after its reason is gone",
        ),
        None => not_asked(address, "something else listens there"),
    };
    vec![finding]
}

/// Where the pages are: as told, else as the server that is used announced them.
fn pages_of(settings: &Settings) -> SocketAddr {
    let as_announced = || {
        let pages = announced(settings).ok().flatten()?.http_endpoint?;
        pages.strip_prefix("http://")?.parse().ok()
    };
    settings
        .http_listen
        .or_else(as_announced)
        .unwrap_or(loopback(ports::HTTP))
}

fn not_asked(address: SocketAddr, why: &str) -> Finding {
    Finding::warn(
        READINESS,
        format!("http://{address}/readyz could not be asked: {why}"),
        "name the address of the service's pages with --http-listen",
    )
}

/// A request by hand: one line of HTTP is no reason for a client library.
async fn ask(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(PAGE_BYTES).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

pub(super) fn read_answer(answer: &str) -> Option<(u16, &str)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let code = head
        .strip_prefix("HTTP/1.")?
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()?;
    Some((code, body.trim()))
}
