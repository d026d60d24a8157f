//! `kill -9` of each service in turn, under load.

use std::time::Duration;

use rand::Rng as _;

use crate::support::load::Load;
use crate::support::native::{Kind, NativeStack};
use crate::support::session::{open_and_attach, resume};
use crate::support::{seed, within};
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
        let connection = stack.connect().await;
        let load = Load::start(&connection, "kills", seed, 4, Duration::from_millis(2)).await;
        let resumes = tokio::spawn(resume_again_and_again(
            stack.endpoints(Kind::Reconstruct),
            stack.endpoints(Kind::Ingest),
            stack.token(),
        ));
        for kind in Kind::ALL {
            let victim = rng.random_range(0..2);
            let context = format!("seed {seed}, {kind:?} {victim}");
            load.advance(rng.random_range(20..200), &context).await;
            stack.kill(kind, victim);
            load.advance(rng.random_range(20..100), &context).await;
            stack.start(kind, victim).await;
        }
        load.advance(50, "after the kills").await;
        resumes.abort();
        if let Err(ended) = resumes.await {
            assert!(ended.is_cancelled(), "seed {seed}: a resume ended with {ended}");
        }
        ends_well(&mut stack, load, &format!("seed {seed}")).await;
    }
}

/// A user that resumes one session over and over: a reconstructor that dies meanwhile is an error that may be tried again,
/// never a wrong body (resume-is-current).
async fn resume_again_and_again(sessions: String, relays: String, token: String) {
    let connect = async || {
        let connection = within("a connection", async {
            loop {
                match wakelog_client::Connection::connect_any(&sessions, Some(token.clone())).await {
                    Ok(connection) => return connection,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        });
        connection.await.with_relays(&relays).expect("endpoints")
    };
    let mut connection = connect().await;
    let level = wakelog_proto::v1::AckLevel::Store;
    let (lifetime, mut writer) = open_and_attach(&connection, "resumed", level).await;
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
