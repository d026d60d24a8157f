//! The gate before PGlite.
//!
//! PGlite serves one connection at a time, its accept loop ends at the first connection that is reset or speaks no
//! Postgres, and it can't be stopped while a client is connected. The gate takes the clients' connections instead: it
//! lets one through at a time, answers the others with a Postgres error if their turn doesn't come, cuts off what is no
//! Postgres, always ends PGlite's side of a connection in good order, and checks after every connection that PGlite
//! still accepts the next one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::Engine;
use crate::watch::Failures;

mod wire;

use wire::Greeting;

/// How long a client waits for its turn.
const TURN_BOUND: Duration = Duration::from_secs(15);
const MAX_WAITING: usize = 32;
const REFUSAL_BOUND: Duration = Duration::from_secs(1);
/// How long a client may take to send its start-up packet.
const GREETING_BOUND: Duration = Duration::from_secs(5);
/// Until PGlite has rolled back and closed what a client left behind; a statement that is running is run to its end.
const END_BOUND: Duration = Duration::from_secs(60);
const END_BOUND_ON_STOP: Duration = Duration::from_secs(5);
const CHECK_BOUND: Duration = Duration::from_secs(10);
const PAUSE_AFTER_ACCEPT_ERROR: Duration = Duration::from_millis(100);
const COPY_BUFFER: usize = 64 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct Gate {
    upstream: SocketAddr,
    turn: Arc<Semaphore>,
    places: Arc<Semaphore>,
    stop: CancellationToken,
    failures: Failures,
}

impl Gate {
    pub(crate) fn new(upstream: SocketAddr, stop: CancellationToken, failures: Failures) -> Self {
        Self {
            upstream,
            turn: Arc::new(Semaphore::new(1)),
            places: Arc::new(Semaphore::new(MAX_WAITING + 1)),
            stop,
            failures,
        }
    }

    /// Serves until stopped; when it returns, no connection to PGlite is open.
    pub(crate) async fn serve(self, listener: TcpListener) -> Result<(), String> {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => break,
                Some(_) = connections.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((client, _)) => {
                    let gate = self.clone();
                    let place = Arc::clone(&self.places).try_acquire_owned().ok();
                    connections.spawn(async move { Box::pin(gate.handle(client, place)).await });
                }
                Err(error) => {
                    tracing::warn!(%error, "hot tail can't accept a connection");
                    tokio::time::sleep(PAUSE_AFTER_ACCEPT_ERROR).await;
                }
            }
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
        Ok(())
    }

    async fn handle(self, mut client: TcpStream, place: Option<OwnedSemaphorePermit>) {
        let greeting = tokio::select! {
            () = self.stop.cancelled() => return,
            greeting = timeout(GREETING_BOUND, read_startup(&mut client)) => greeting,
        };
        let startup = match greeting {
            Ok(Ok(Some(startup))) => startup,
            Ok(Ok(None)) => return,
            Ok(Err(error)) => return tracing::debug!(%error, "hot tail client sent no start-up packet"),
            Err(_) => return tracing::debug!("hot tail client sent no start-up packet in time"),
        };
        if place.is_none() {
            return refuse(client, "too many connections wait for the embedded hot tail").await;
        }
        let turn = tokio::select! {
            () = self.stop.cancelled() => return,
            turn = timeout(TURN_BOUND, self.turn.acquire()) => turn,
        };
        let Ok(Ok(_turn)) = turn else {
            return refuse(
                client,
                "the embedded hot tail serves one connection at a time and is in use",
            )
            .await;
        };
        let upstream = match connect(self.upstream).await {
            Ok(upstream) => upstream,
            Err(error) => {
                self.failures.report(
                    Engine::HotTail,
                    format!("it accepts no connection any more: {error}"),
                );
                return refuse(client, "the embedded hot tail has ended").await;
            }
        };
        self.pass(client, upstream, &startup).await;
        match timeout(CHECK_BOUND, is_accepting(self.upstream)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.failures.report(
                Engine::HotTail,
                format!("it stopped accepting after a connection ended: {error}"),
            ),
            Err(_) => self.failures.report(
                Engine::HotTail,
                format!("it took no connection for {CHECK_BOUND:?} after one ended"),
            ),
        }
    }

    async fn pass(&self, client: TcpStream, mut upstream: TcpStream, startup: &[u8]) {
        if let Err(error) = client.set_nodelay(true) {
            tracing::debug!(%error, "hot tail client was gone at once");
        }
        if let Err(error) = upstream.write_all(startup).await {
            return tracing::debug!(%error, "hot tail took no start-up packet");
        }
        let (client_read, client_write) = client.into_split();
        let (upstream_read, upstream_write) = upstream.into_split();
        // Ends when PGlite has closed its side, whatever the client did.
        let answers = pass_answers(upstream_read, client_write);
        tokio::pin!(answers);
        let requests = async {
            tokio::select! {
                upstream_write = pass_requests(client_read, upstream_write) => drop(upstream_write),
                () = self.stop.cancelled() => {}
            }
        };
        // Dropping the write half is what tells PGlite that the client is gone.
        tokio::select! {
            () = requests => {}
            () = &mut answers => return,
        }
        let bound = async {
            tokio::select! {
                () = tokio::time::sleep(END_BOUND) => {}
                () = async {
                    self.stop.cancelled().await;
                    tokio::time::sleep(END_BOUND_ON_STOP).await;
                } => {}
            }
        };
        tokio::select! {
            () = &mut answers => {}
            () = bound => tracing::warn!("hot tail did not close a connection in time"),
        }
    }
}

/// The client's start-up packet; none if it only wanted to cancel, which PGlite can't.
async fn read_startup(client: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    // A client may ask for encryption in two ways before it starts.
    for _ in 0..3 {
        let length = client.read_u32().await?;
        let mut body = vec![0; wire::startup_length(length)?];
        client.read_exact(&mut body).await?;
        match wire::greeting(&body)? {
            Greeting::Encryption => client.write_all(b"N").await?,
            Greeting::Cancel => return Ok(None),
            Greeting::Startup => return Ok(Some(wire::with_length(&body))),
        }
    }
    Err(io::Error::other("it goes on asking for encryption"))
}

/// Copies until the client ends, in good order or not, or sends what can't be a message.
async fn pass_requests(mut client: OwnedReadHalf, mut upstream: OwnedWriteHalf) -> OwnedWriteHalf {
    let mut frames = wire::Frames::default();
    let mut buffer = vec![0; COPY_BUFFER];
    while let Ok(length) = client.read(&mut buffer).await {
        if let Err(error) = frames.check(&buffer[..length]) {
            tracing::warn!(%error, "hot tail client is cut off");
            break;
        }
        if length == 0 || upstream.write_all(&buffer[..length]).await.is_err() {
            break;
        }
    }
    upstream
}

/// Copies until PGlite closes. What the client no longer takes is read all the same, or PGlite would see a reset.
async fn pass_answers(mut upstream: OwnedReadHalf, client: OwnedWriteHalf) {
    let mut client = Some(client);
    let mut buffer = vec![0; COPY_BUFFER];
    while let Ok(length) = upstream.read(&mut buffer).await {
        if length == 0 {
            break;
        }
        if let Some(writer) = client.as_mut()
            && writer.write_all(&buffer[..length]).await.is_err()
        {
            client = None;
        }
    }
}

async fn connect(upstream: SocketAddr) -> io::Result<TcpStream> {
    let socket = timeout(CHECK_BOUND, TcpStream::connect(upstream))
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// A connection that says nothing: a live accept loop closes it in good order, an ended one refuses or resets it.
async fn is_accepting(upstream: SocketAddr) -> io::Result<()> {
    let mut socket = connect(upstream).await?;
    socket.shutdown().await?;
    let mut byte = [0; 1];
    match socket.read(&mut byte).await? {
        0 => Ok(()),
        _ => Err(io::Error::other("an answer without a question")),
    }
}

/// Whether the database opens: a start-up handshake up to `ReadyForQuery`, then a good-bye.
pub(crate) async fn handshake(address: SocketAddr, user: &str, database: &str) -> io::Result<()> {
    let mut socket = connect(address).await?;
    socket.write_all(&wire::startup(user, database)).await?;
    loop {
        let kind = socket.read_u8().await?;
        let length = socket.read_u32().await?;
        let mut body = vec![0; wire::body_length(length)?];
        socket.read_exact(&mut body).await?;
        match kind {
            b'Z' => break,
            b'E' => return Err(io::Error::other(wire::error_message(&body))),
            _ => {}
        }
    }
    socket.write_all(&wire::terminate()).await?;
    // Closed from the other side: the next connection's turn has come.
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.map(|_| ())
}

async fn refuse(mut client: TcpStream, message: &str) {
    let refusal = async {
        client.write_all(&wire::too_many_connections(message)).await?;
        client.shutdown().await
    };
    if !matches!(timeout(REFUSAL_BOUND, refusal).await, Ok(Ok(()))) {
        tracing::debug!("hot tail client left before it was refused");
    }
}

#[cfg(test)]
mod tests;
