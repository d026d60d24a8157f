//! `kill -9` of each service in turn, under load.

use std::time::{Duration, Instant};

use rand::Rng as _;
use wakelog_client::Connection;
use wakelog_proto::v1::AckLevel;

use crate::support::load::{Load, Loaded};
use crate::support::native::fleet::PARTITIONS;
use crate::support::native::{Kind, NativeStack};
use crate::support::session::{open_and_attach, open_on, resume};
use crate::support::{PATIENCE, seed, within};
use crate::{ends_well, support};

/// Invariants acked-is-durable, exactly-once-fold, no-silent-gap, byte-exact: while one of two dies the other goes on, and
/// when it is back nothing is lost, doubled or altered. Each kill comes after a seeded number of acknowledged entries.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_over_kill_9_of_each_service() {
    for seed in seed::seeds(5) {
        eprintln!("seed {seed}: WAKELOG_TEST_SEED={seed} replays it");
        let mut rng = seed::rng(seed);
        let mut stack = NativeStack::prepare().await;
        stack.up().await;
        // Both of each kind are busy.
        let connections = [stack.connect_turned(0).await, stack.connect_turned(1).await];
        let load = load_on_every_partition(&connections, seed).await;
        let resumes = (0..2).map(|number| {
            let mut servers = [0, 1].map(|server| stack.endpoint(Kind::Reconstruct, server));
            servers.rotate_left(number);
            let (servers, relays) = (servers.join(","), stack.endpoints(Kind::Ingest));
            tokio::spawn(resume_again_and_again(servers, relays, stack.token(), number))
        });
        let resumes: Vec<_> = resumes.collect();
        for kind in Kind::ALL {
            let victim = rng.random_range(0..2);
            let context = format!("seed {seed}, {kind:?} {victim}");
            load.advance(rng.random_range(20..200), &context).await;
            is_busy(&stack, kind, victim, &context).await;
            stack.kill(kind, victim);
            load.advance(rng.random_range(20..100), &context).await;
            stack.start(kind, victim).await;
        }
        load.advance(50, "after the kills").await;
        for resumes in resumes {
            resumes.abort();
            if let Err(ended) = resumes.await {
                assert!(ended.is_cancelled(), "seed {seed}: a resume ended with {ended}");
            }
        }
        ends_well(&mut stack, load, &format!("seed {seed}")).await;
    }
}

/// A session on each partition, so that every persister and archiver has work; over each connection one of both levels.
async fn load_on_every_partition(connections: &[Connection; 2], seed: u64) -> Load {
    let mut sessions = Vec::new();
    for partition in 0..PARTITIONS {
        let connection = &connections[partition as usize % 2];
        let level = match partition / 2 % 2 {
            0 => AckLevel::Log,
            _ => AckLevel::Store,
        };
        let session = open_on(connection, &format!("kills-{seed}-{partition}"), partition).await;
        sessions.push(Loaded::attach(connection, &session, level).await);
    }
    Load::start_in(sessions, seed, Duration::from_millis(2))
}

/// The victim has something to do, so that its death is one under load.
async fn is_busy(stack: &NativeStack, kind: Kind, number: usize, context: &str) {
    let work = match kind {
        Kind::Ingest => "wakelog_ingest_entries_total",
        Kind::Persist => "wakelog_persister_entries_total",
        Kind::Reconstruct => "wakelog_reconstructor_body_bytes_total",
        Kind::Archive => "wakelog_archiver_segments_total",
    };
    let deadline = Instant::now() + PATIENCE;
    while stack.metric(kind, number, work).await == 0.0 {
        assert!(Instant::now() < deadline, "{context}: it has nothing to do");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A user that resumes one session over and over: a reconstructor that dies meanwhile is an error that may be tried again,
/// never a wrong body (resume-is-current).
async fn resume_again_and_again(sessions: String, relays: String, token: String, number: usize) {
    let connect = async || {
        let connection = within("a connection", async {
            loop {
                match Connection::connect_any(&sessions, Some(token.clone())).await {
                    Ok(connection) => return connection,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        });
        connection.await.with_relays(&relays).expect("endpoints")
    };
    let mut connection = connect().await;
    let level = wakelog_proto::v1::AckLevel::Store;
    let (lifetime, mut writer) = open_and_attach(&connection, &format!("resumed-{number}"), level).await;
    let body = support::seed::entry(&mut seed::rng(7), 1).bytes;
    writer.append(body.clone(), true).await.expect("an append");
    within("a drain", writer.drain()).await.expect("a drain");
    for number in 0.. {
        let request = format!("resume-{number}");
        within("a resume with its tries", async {
            loop {
                match resume(&connection, &lifetime.session_id, &request).await {
                    Ok((_, resumed)) => {
                        assert!(resumed == body, "resume {number}: another body");
                        return;
                    }
                    Err(error) => {
                        eprintln!("resume {number}: {error}");
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        connection = connect().await;
                    }
                }
            }
        })
        .await;
    }
}
