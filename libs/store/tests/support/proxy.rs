//! A proxy that loses the answer to COMMIT: the case that a test can't have from a healthy server.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// What becomes of the first COMMIT that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The server never gets it.
    OfTheRequest,
    /// The server gets it, the client never hears.
    OfTheAnswer,
}

/// Listens on a port of its own and hands everything on to the server until a COMMIT passes; then it cuts the
/// connection. Ends with the runtime of the test.
pub async fn cut_at_commit(server_port: u16, loss: Loss) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", server_port)).await.unwrap();
            tokio::spawn(relay(client, server, loss));
        }
    });
    port
}

async fn relay(client: TcpStream, server: TcpStream, loss: Loss) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (cut, is_cut) = oneshot::channel::<()>();
    let answers = tokio::spawn(async move {
        tokio::select! {
            _ended = tokio::io::copy(&mut from_server, &mut to_client) => {}
            _cut = is_cut => {}
        }
        (from_server, to_client)
    });
    while let Some(bytes) = read(&mut from_client).await {
        let is_commit = bytes.windows(6).any(|window| window == b"COMMIT");
        if is_commit {
            // No answer gets through from here on. The server does the COMMIT before the client hears of the cut, or gets nothing.
            cut.send(()).unwrap();
            let (mut from_server, _to_client) = answers.await.unwrap();
            if loss == Loss::OfTheAnswer {
                to_server.write_all(&bytes).await.unwrap();
                assert!(read(&mut from_server).await.is_some(), "the server answers");
            }
            return;
        }
        if to_server.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn read(from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 64 * 1024];
    match from.read(&mut bytes).await {
        Ok(0) | Err(_) => None,
        Ok(length) => {
            bytes.truncate(length);
            Some(bytes)
        }
    }
}
