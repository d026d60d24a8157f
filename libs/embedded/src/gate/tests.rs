use std::net::Ipv4Addr;

use super::*;
use crate::Error;

struct Stand {
    gate: SocketAddr,
    upstream: TcpListener,
    stop: CancellationToken,
    failures: Failures,
    serving: tokio::task::JoinHandle<Result<(), String>>,
}

/// A gate before a database that the test plays itself.
async fn stand() -> Stand {
    let upstream = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let stop = CancellationToken::new();
    let failures = Failures::new();
    let gate = Gate::new(upstream.local_addr().unwrap(), stop.clone(), failures.clone());
    Stand {
        gate: listener.local_addr().unwrap(),
        upstream,
        stop,
        failures,
        serving: tokio::spawn(gate.serve(listener)),
    }
}

async fn client_of(stand: &Stand) -> (TcpStream, TcpStream) {
    let mut client = TcpStream::connect(stand.gate).await.unwrap();
    let startup = wire::startup("u", "db");
    client.write_all(&startup).await.unwrap();
    let (mut database, _) = stand.upstream.accept().await.unwrap();
    let mut seen = vec![0; startup.len()];
    database.read_exact(&mut seen).await.unwrap();
    assert_eq!(seen, startup);
    (client, database)
}

/// The check after a connection.
async fn take_check(stand: &Stand) {
    let (mut check, _) = stand.upstream.accept().await.unwrap();
    assert_eq!(check.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_reset_of_the_client_is_an_orderly_end_for_the_database() {
    let stand = stand().await;
    let (client, mut database) = client_of(&stand).await;
    client.set_zero_linger().unwrap();
    drop(client);
    assert_eq!(database.read(&mut [0; 16]).await.unwrap(), 0);
    // What it still has to say is taken, much more than fits into socket buffers.
    database.write_all(&vec![7; 16 * 1024 * 1024]).await.unwrap();
    drop(database);
    take_check(&stand).await;
    stand.stop.cancel();
    stand.serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_next_connection_begins_when_the_database_has_closed_the_one_before() {
    let stand = stand().await;
    let (first, mut database) = client_of(&stand).await;
    drop(first);
    assert_eq!(database.read(&mut [0; 16]).await.unwrap(), 0);
    let mut second = TcpStream::connect(stand.gate).await.unwrap();
    second.write_all(&wire::startup("u", "db")).await.unwrap();
    let early = timeout(Duration::from_millis(200), stand.upstream.accept()).await;
    assert!(early.is_err());
    drop(database);
    take_check(&stand).await;
    let (mut database, _) = stand.upstream.accept().await.unwrap();
    let mut seen = vec![0; wire::startup("u", "db").len()];
    database.read_exact(&mut seen).await.unwrap();
}

#[tokio::test]
async fn an_accept_loop_that_ended_is_noticed() {
    let mut stand = stand().await;
    let (client, database) = client_of(&stand).await;
    let failures = stand.failures.clone();
    // A port that nobody else gets takes the listener's place, or the test's own listener would be the check's peer.
    let closed = std::mem::replace(
        &mut stand.upstream,
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap(),
    );
    drop(closed);
    drop((client, database));
    let failed = timeout(Duration::from_secs(5), failures.failed()).await.unwrap();
    assert!(
        matches!(
            failed,
            Error::Ended {
                engine: Engine::HotTail,
                ..
            }
        ),
        "{failed}"
    );
    let mut late = TcpStream::connect(stand.gate).await.unwrap();
    late.write_all(&wire::startup("u", "db")).await.unwrap();
    assert_eq!(late.read_u8().await.unwrap(), b'E');
}

#[tokio::test]
async fn encryption_is_declined_and_stop_ends_an_idle_client() {
    let stand = stand().await;
    let mut client = TcpStream::connect(stand.gate).await.unwrap();
    client.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), b'N');
    client.write_all(&wire::startup("u", "db")).await.unwrap();
    let (mut database, _) = stand.upstream.accept().await.unwrap();
    let mut seen = vec![0; wire::startup("u", "db").len()];
    database.read_exact(&mut seen).await.unwrap();
    stand.stop.cancel();
    assert_eq!(database.read(&mut [0; 16]).await.unwrap(), 0);
    drop(database);
    take_check(&stand).await;
    stand.serving.await.unwrap().unwrap();
    assert_eq!(client.read(&mut [0; 16]).await.unwrap(), 0);
}
