//! The deployment is wrong: an engine is away, too old, something else, refuses, or is set up so that it can't keep what it is
//! asked to keep. Whoever is started says what is wrong and what to do, ends with 5 within a bound, and leaves nothing behind;
//! the doctor says the same.

mod case;
mod database;
mod log;
mod old_server;
mod site;

use std::time::Instant;

use rdkafka::mocking::MockCluster;

use crate::support::PATIENCE;
use crate::support::native::s3_proxy::{Fault, S3Proxy};
use crate::support::process::{Process, end_of, free_port, ready};
use case::{Case, Finding, OF_ARCHIVE, OF_BUCKET, Scene, Start, check_all};
use site::{Site, WRONG_SECRET};

/// Nobody listens there.
const NOBODY: &str = "127.0.0.1:1";

const BROKERS: &str = "WAKELOG_BROKERS";
const S3_ENDPOINT: &str = "WAKELOG_S3_ENDPOINT";

/// A name that no resolver is even asked for: its first label is too long.
fn no_host() -> String {
    format!("{}.invalid", "x".repeat(64))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_is_away_or_refuses_is_named() {
    let site = Site::shared().await;
    let read_only = S3Proxy::before(site.engines.s3.port()).await;
    read_only.set(Fault::ReadOnly);
    let away = |name, endpoint: String, says: &[&str]| {
        Case::new(name, says, "is --s3-endpoint right")
            .with(S3_ENDPOINT, endpoint)
            .of(OF_ARCHIVE)
    };
    let of_port = |port: u16| format!("http://127.0.0.1:{port}");
    let kafka = format!("http://{}", site.engines.kafka.brokers());
    let keys = "are the keys right";
    let cases = vec![
        away(
            "no store",
            format!("http://{NOBODY}"),
            &["http://127.0.0.1:1", "refused"],
        ),
        away(
            "no host",
            format!("http://{}", no_host()),
            &["xxx.invalid", "lookup"],
        ),
        away(
            "silence",
            of_port(site.silent),
            &["can't be reached", "no answer"],
        ),
        away("a broker", kafka, &["can't be reached"]),
        away(
            "TLS is demanded",
            site.engines.s3.endpoint().replace("http:", "https:"),
            &["TLS"],
        ),
        Case::new("a wrong secret", &["SignatureDoesNotMatch"], keys)
            .with("WAKELOG_S3_SECRET_KEY", WRONG_SECRET)
            .of(OF_BUCKET),
        Case::new("an unknown key", &["refuses bucket", "access key"], keys)
            .with("WAKELOG_S3_ACCESS_KEY", "stranger")
            .of(OF_BUCKET),
        Case::new(
            "no bucket",
            &["no such bucket: nowhere"],
            "Wakelog creates no bucket",
        )
        .with("WAKELOG_S3_BUCKET", "nowhere")
        .of(OF_BUCKET),
        Case::new("read-only", &["takes no writes", "AccessDenied"], "take writes")
            .with(S3_ENDPOINT, read_only.endpoint())
            .of(OF_ARCHIVE),
    ];
    check_all(&site, cases).await;
}

/// What is right is found right, so that the cases above are wrong for what they name; and what only weakens a guarantee is said
/// aloud and does not keep a service from its work.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_weakens_a_guarantee_is_said_and_used() {
    let site = Site::shared().await;
    let right = Scene::set(&site, &Case::new("right", &[], "")).await;
    let (_, findings) = right.doctor().await;
    assert!(
        findings.iter().all(|finding| finding.level != "fail"),
        "{findings:#?}"
    );

    let weak: &[(&str, &str)] = &[
        ("message.timestamp.type", "CreateTime"),
        ("retention.bytes", "1000000"),
        ("retention.ms", "60000"),
    ];
    let case = Case {
        topic: Some((2, weak)),
        ..Case::new("weak", &[], "")
    };
    let scene = Scene::set(&site, &case).await;
    let said = [
        "message.timestamp.type is \"CreateTime\"",
        "retention.bytes is 1000000",
        "retention.ms is 60000",
        "min.insync.replicas is 1",
    ];
    let (_, findings) = scene.doctor().await;
    for text in said {
        let found = finding(&findings, text);
        assert!(found.level == "warn" && !found.mend.is_empty(), "{found:?}");
    }
    let log = goes_up(&scene, Start::Archive).await;
    for text in said {
        assert!(log.contains(text), "{text} is not in\n{log}");
    }

    let case = Case {
        damage: "ALTER DATABASE TOPIC SET synchronous_commit = off",
        ..Case::new("forgetful", &[], "")
    };
    let scene = Scene::set(&site, &case).await;
    let said = "synchronous_commit is off";
    let (_, findings) = scene.doctor().await;
    let found = finding(&findings, said);
    assert!(found.level == "warn" && !found.mend.is_empty(), "{found:?}");
    let log = goes_up(&scene, Start::Persist).await;
    assert!(log.contains(said), "{said} is not in\n{log}");

    // A topic of one replica where there could be three. The mock stands for a cluster; it tells of no settings.
    let three = MockCluster::new(3).expect("a mock");
    three.create_topic("thin", 2, 1).expect("a topic");
    let case = |replication: &str| {
        Case::new("thin", &[], "")
            .with(BROKERS, three.bootstrap_servers())
            .with("WAKELOG_TOPIC", "thin")
            .with("WAKELOG_REPLICATION", replication)
    };
    for (replication, level, text) in [
        ("1", "warn", "1 replica on a cluster of 3 brokers"),
        ("3", "fail", "--replication asks for 3"),
    ] {
        let (_, findings) = Scene::set(&site, &case(replication)).await.doctor().await;
        let found = finding(&findings, text);
        assert!(found.level == level && !found.mend.is_empty(), "{found:?}");
    }
}

/// Most bodies need nothing of the archive: a reconstructor starts without it, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_reconstructor_starts_while_the_archive_is_away() {
    let site = Site::shared().await;
    let case = Case::new("no store", &[], "").with(S3_ENDPOINT, format!("http://{NOBODY}"));
    let scene = Scene::set(&site, &case).await;
    let log = goes_up(&scene, Start::Reconstruct).await;
    assert!(
        log.contains("bodies that need the archive are errors until it answers"),
        "{log}"
    );
}

/// The first finding whose message has this text.
fn finding<'a>(findings: &'a [Finding], text: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.message.contains(text));
    found.unwrap_or_else(|| panic!("{text} is not in {findings:#?}"))
}

/// Starts a service, waits until it is ready, stops it; what it has logged.
async fn goes_up(scene: &Scene, start: Start) -> String {
    let pages = format!("127.0.0.1:{}", free_port());
    let log = scene.folder().join("log");
    let mut process = Process::start("service", &scene.start(start, &pages), &log);
    let deadline = Instant::now() + PATIENCE;
    while !ready(&pages).await {
        let ended = process.ended();
        assert!(
            ended.is_none() && Instant::now() < deadline,
            "{ended:?}\n{}",
            end_of(&log)
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(process.stop().success(), "{}", end_of(&log));
    std::fs::read_to_string(log).expect("a log")
}
