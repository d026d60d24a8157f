//! A proxy before the database that goes silent in the middle of a statement's rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::process::free_port;

/// Where the proxy stands with its one stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Stalled,
    Over,
}

/// Hands everything on until so many bytes of one request have passed; the rest of that request waits until
/// [`Stall::release`]. It stalls once. Ends with the runtime of the test.
pub struct Stall {
    port: u16,
    phase: watch::Sender<Phase>,
}

impl Stall {
    /// A proxy before `server_port` that stalls once a request has grown beyond `bytes`.
    pub async fn in_a_request_of(bytes: u64, server_port: u16) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let (phase, _) = watch::channel(Phase::Waiting);
        let shared = phase.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server_port)).await;
                if let Ok(server) = server {
                    tokio::spawn(hand_on(client, server, bytes, shared.clone()));
                }
            }
        });
        Self { port, phase }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until a request is held up half way.
    pub async fn stalled(&self) {
        let mut phase = self.phase.subscribe();
        phase
            .wait_for(|phase| *phase == Phase::Stalled)
            .await
            .expect("the proxy is there");
    }

    /// Lets the rest of the request pass, and everything after it.
    pub fn release(&self) {
        self.phase.send_replace(Phase::Over);
    }
}

async fn hand_on(client: TcpStream, server: TcpStream, limit: u64, phase: watch::Sender<Phase>) {
    let (mut from_client, mut to_server) = (client, server);
    let (mut client_reader, mut client_writer) = from_client.split();
    let (mut server_reader, mut server_writer) = to_server.split();
    let since_answer = Arc::new(AtomicU64::new(0));
    let requests = async {
        let mut bytes = vec![0; 16 * 1024];
        while let Ok(length @ 1..) = client_reader.read(&mut bytes).await {
            let passed = since_answer.fetch_add(length as u64, Ordering::Relaxed) + length as u64;
            if passed > limit {
                stall_once(&phase).await;
            }
            if server_writer.write_all(&bytes[..length]).await.is_err() {
                return;
            }
        }
    };
    let answers = async {
        let mut bytes = vec![0; 16 * 1024];
        while let Ok(length @ 1..) = server_reader.read(&mut bytes).await {
            since_answer.store(0, Ordering::Relaxed);
            if client_writer.write_all(&bytes[..length]).await.is_err() {
                return;
            }
        }
    };
    // Either side's end is the connection's.
    tokio::select! {
        () = requests => {}
        () = answers => {}
    }
}

async fn stall_once(phase: &watch::Sender<Phase>) {
    let mine = phase.send_if_modified(|phase| {
        let first = *phase == Phase::Waiting;
        if first {
            *phase = Phase::Stalled;
        }
        first
    });
    if mine {
        let mut over = phase.subscribe();
        over.wait_for(|phase| *phase == Phase::Over).await.ok();
    }
}
