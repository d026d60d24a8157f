//! A proxy before the database that can lose the answer of a COMMIT, or cut its clients off.
//!
//! It reads the types and lengths of messages, and of what a client says only whether it is a COMMIT.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::process::free_port;

/// The request for TLS: 80877103 where a version would stand.
const TLS_REQUEST: [u8; 4] = [0x04, 0xd2, 0x16, 0x2f];

/// How long the server may take to answer a COMMIT that is to be lost.
const ANSWER_BOUND: Duration = Duration::from_secs(5);

/// The proxy. Ends with the runtime of the test.
pub struct PgProxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    is_cut: watch::Sender<bool>,
    /// How many answers are still to be lost.
    to_lose: AtomicU64,
    lost: AtomicU64,
}

impl PgProxy {
    /// A proxy before `server_port` that hands everything on.
    pub async fn before(server_port: u16) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let shared = Arc::new(Shared {
            is_cut: watch::Sender::new(false),
            to_lose: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let serving = shared.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *serving.is_cut.borrow() {
                    continue;
                }
                let shared = serving.clone();
                tokio::spawn(async move {
                    let mut is_cut = shared.is_cut.subscribe();
                    // A connection that breaks is the client's business.
                    tokio::select! {
                        _ = serve(client, server_port, &shared) => {}
                        _ = is_cut.wait_for(|is_cut| *is_cut) => {}
                    }
                });
            }
        });
        Self { port, shared }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends every connection, and lets none be made.
    pub fn cut(&self) {
        self.shared.is_cut.send_replace(true);
    }

    /// Lets connections be made again.
    pub fn mend(&self) {
        self.shared.is_cut.send_replace(false);
    }

    /// The next so many COMMITs happen, and their connections end without an answer.
    pub fn lose_commits(&self, count: u64) {
        self.shared.to_lose.store(count, Ordering::SeqCst);
    }

    /// How many answers were lost so far.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn take_one_to_lose(&self) -> bool {
        let taken = self
            .to_lose
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        taken.is_ok()
    }
}

async fn serve(mut client: TcpStream, server_port: u16, shared: &Shared) -> io::Result<()> {
    let mut server = TcpStream::connect(("127.0.0.1", server_port)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let (is_losing, mut loses) = watch::channel(false);
    let requests = async {
        loop {
            let startup = read_startup(&mut from_client).await?;
            to_server.write_all(&startup).await?;
            if startup.get(4..8) != Some(&TLS_REQUEST[..]) {
                break;
            }
        }
        hand_requests_on(&mut from_client, &mut to_server, shared, &is_losing).await
    };
    let answers = async {
        let handed_on = async { tokio::io::copy(&mut from_server, &mut to_client).await };
        tokio::select! {
            ended = handed_on => return ended.map(drop),
            _ = loses.wait_for(|loses| *loses) => {}
        }
        let answered = tokio::time::timeout(ANSWER_BOUND, read_to_ready(&mut from_server)).await;
        if matches!(answered, Ok(Ok(()))) {
            shared.lost.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    };
    // Either side's end is the connection's.
    tokio::select! {
        ended = requests => ended,
        ended = answers => ended,
    }
}

/// Hands messages on; once a COMMIT is to be lost, what the server says goes nowhere any more.
async fn hand_requests_on(
    client: &mut ReadHalf<'_>,
    server: &mut WriteHalf<'_>,
    shared: &Shared,
    is_losing: &watch::Sender<bool>,
) -> io::Result<()> {
    loop {
        let message = read_message(client).await?;
        let is_commit = message[0] == b'Q' && message[5..].to_ascii_uppercase().starts_with(b"COMMIT");
        if is_commit && shared.take_one_to_lose() {
            is_losing.send_replace(true);
        }
        server.write_all(&message).await?;
    }
}

/// The first message has no type.
async fn read_startup(client: &mut ReadHalf<'_>) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 4];
    client.read_exact(&mut message).await?;
    read_rest(client, &mut message, 0).await?;
    Ok(message)
}

async fn read_message(peer: &mut ReadHalf<'_>) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 5];
    peer.read_exact(&mut message).await?;
    read_rest(peer, &mut message, 1).await?;
    Ok(message)
}

/// Reads what the length at `position` says is left; the length counts itself.
async fn read_rest(peer: &mut ReadHalf<'_>, message: &mut Vec<u8>, position: usize) -> io::Result<()> {
    let mut length = [0; 4];
    length.copy_from_slice(&message[position..position + 4]);
    let end = position + u32::from_be_bytes(length) as usize;
    let start = message.len();
    if end < start {
        return Err(io::ErrorKind::InvalidData.into());
    }
    message.resize(end, 0);
    peer.read_exact(&mut message[start..]).await?;
    Ok(())
}

/// Reads answers up to the one that says that the server is ready for more: by then the COMMIT has happened.
async fn read_to_ready(server: &mut ReadHalf<'_>) -> io::Result<()> {
    while read_message(server).await?[0] != b'Z' {}
    Ok(())
}
