//! The deployment is wrong: an engine is away, too old, something else, refuses, or is set up so that it can't keep what it is
//! asked to keep. Whoever is started says what is wrong and what to do, ends with 5 within a bound, and leaves nothing behind;
//! the doctor says the same.

mod case;
mod old_server;
mod site;

use std::time::Instant;

use rdkafka::mocking::MockCluster;
use rdkafka::types::RDKafkaApiKey;

use crate::support::PATIENCE;
use crate::support::native::s3_proxy::{Fault, S3Proxy};
use crate::support::process::{Process, end_of, free_port, ready};
use case::{ALONE, Case, OF_ARCHIVE, OF_BUCKET, Scene, Start, WHO_MIGRATES, WRITERS, check_all};
use site::{Site, WRONG_SECRET};

/// Nobody listens there.
const NOBODY: &str = "127.0.0.1:1";

const DATABASE_URL: &str = "WAKELOG_DATABASE_URL";
const BROKERS: &str = "WAKELOG_BROKERS";
const S3_ENDPOINT: &str = "WAKELOG_S3_ENDPOINT";

/// A name that no resolver is even asked for: its first label is too long.
fn no_host() -> String {
    format!("{}.invalid", "x".repeat(64))
}

fn database(name: &'static str, url: impl Into<String>, says: &[&str], hint: &'static str) -> Case {
    Case::new(name, says, hint).with(DATABASE_URL, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_or_no_postgres_is_named() {
    let site = Site::shared().await;
    let away = "is the database running";
    let at = |address: &str| format!("postgres://wakelog:{WRONG_SECRET}@{address}/DATABASE");
    let of_port = |port: u16| at(&format!("127.0.0.1:{port}"));
    let kafka = at(&site.engines.kafka.brokers());
    let silence = "gives no answer as PostgreSQL does";
    let cases = vec![
        database("no server", at(NOBODY), &["127.0.0.1:1/", "refused"], away),
        database("no host", at(&no_host()), &["xxx.invalid:5432/", "lookup"], away),
        database("silence", of_port(site.silent), &[silence], away),
        database(
            "an HTTP server",
            of_port(site.engines.s3.port()),
            &[silence],
            away,
        ),
        database("a broker", kafka, &[silence], away),
        database(
            "an old server",
            of_port(site.old_postgres),
            &["PostgreSQL 13", "15 or newer is needed"],
            "has to be upgraded",
        ),
    ];
    check_all(&site, cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_refuses_is_named() {
    let site = Site::shared().await;
    let port = site.engines.postgres.port();
    let who = |user: &str| format!("postgres://{user}@127.0.0.1:{port}/DATABASE");
    let credentials = "are user, password and database of --database-url right?";
    let may_not = "grant it to the user";
    let cases = vec![
        database(
            "a wrong password",
            who(&format!("with_password:{WRONG_SECRET}")),
            &["password authentication failed", "with_password"],
            credentials,
        ),
        database(
            "no password",
            who("with_password"),
            &["password authentication failed"],
            credentials,
        ),
        database(
            "an unknown user",
            who("stranger"),
            &["\"stranger\" does not exist"],
            credentials,
        ),
        database(
            "an unknown database",
            format!("postgres://wakelog@127.0.0.1:{port}/nowhere"),
            &["\"nowhere\" does not exist"],
            "`createdb` does",
        ),
        Case {
            doctor: Some(("permission denied", may_not)),
            ..database(
                "no rights",
                who("nobody"),
                &["permission denied for table"],
                may_not,
            )
        },
        database(
            "rights to read alone",
            who("reader"),
            &["user reader lacks", "INSERT on"],
            may_not,
        )
        .of(WRITERS),
        database(
            "read-only",
            who("stuck"),
            &["read-only by default"],
            "name the primary server",
        ),
        Case {
            has_tables: false,
            doctor: Some(("migration 1 is not applied", "wakelog migrate")),
            ..database(
                "no right to make tables",
                who("nobody"),
                &["nobody may make no tables"],
                may_not,
            )
            .of(WHO_MIGRATES)
        },
        database(
            "TLS is wanted",
            who("tls_only"),
            &["without TLS", "tls_only"],
            "pg_hba.conf",
        ),
        database(
            "TLS is demanded",
            who("wakelog") + "?sslmode=require",
            &["TLS is asked for", "127.0.0.1"],
            "take sslmode out",
        ),
    ];
    check_all(&site, cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_is_not_this_builds_is_named() {
    let site = Site::shared().await;
    let case = |name, damage, says: &[&str], hint| Case {
        damage,
        ..Case::new(name, says, hint)
    };
    let cases = vec![
        case(
            "newer",
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (99, 'from the future', true, '\\x00', 0)",
            &["the schema is at version 99", "this build knows"],
            "use that version",
        ),
        case(
            "a hole",
            "DELETE FROM _sqlx_migrations WHERE version = 2",
            &["migration 2 is missing below a newer one"],
            "_sqlx_migrations",
        ),
        case(
            "other content",
            "UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 2",
            &["migration 2 was applied with other content"],
            "another program",
        ),
        case(
            "half applied",
            "UPDATE _sqlx_migrations SET success = false WHERE version = 3",
            &["migration 3 is half applied"],
            "restore a backup",
        ),
        Case {
            has_tables: false,
            ..Case::new(
                "no tables",
                &["migration 1 is not applied"],
                "run `wakelog migrate`",
            )
            .of(ALONE)
        },
    ];
    check_all(&site, cases).await;
}

fn log(name: &'static str, brokers: impl Into<String>, says: &[&str], hint: &'static str) -> Case {
    Case::new(name, says, hint).with(BROKERS, brokers)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_away_or_no_kafka_is_named() {
    let site = Site::shared().await;
    let away = "is the broker running";
    let no_broker = "--brokers must name Kafka brokers";
    let of_port = |port: u16| format!("127.0.0.1:{port}");
    // librdkafka's own mock stands for a broker that is older than what can be run.
    let old = MockCluster::new(1).expect("a mock");
    old.apiversion(RDKafkaApiKey::InitProducerId, None, None)
        .expect("it forgets");
    let cases = vec![
        log("no broker", NOBODY, &["127.0.0.1:1", "refused"], away),
        log(
            "no host",
            format!("{}:9092", no_host()),
            &["xxx.invalid:9092", "resolve"],
            away,
        ),
        log(
            "silence",
            of_port(site.silent),
            &["takes connections and gives no answer"],
            no_broker,
        ),
        log(
            "an HTTP server",
            of_port(site.engines.s3.port()),
            &["an HTTP server answers"],
            no_broker,
        ),
        log(
            "a database",
            of_port(site.engines.postgres.port()),
            &["a PostgreSQL server answers"],
            no_broker,
        ),
        log(
            "an old broker",
            old.bootstrap_servers(),
            &["too old", "InitProducerId"],
            "upgrade the brokers",
        ),
    ];
    check_all(&site, cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_refuses_is_named() {
    let site = Site::shared().await;
    let of_port = |port: u16| format!("127.0.0.1:{port}");
    let login = format!(
        "\"security.protocol\" = \"sasl_plaintext\"\n\"sasl.mechanism\" = \"PLAIN\"\n\"sasl.username\" = \"wakelog\"\n\
         \"sasl.password\" = \"{WRONG_SECRET}\"\n"
    );
    let of_login = "are security.protocol and sasl.*";
    let cases = vec![
        log(
            "a login is wanted",
            of_port(site.doors.sasl),
            &["lets this client no further"],
            "security.protocol = \"sasl_plaintext\"",
        ),
        Case {
            kafka: login.clone(),
            ..log(
                "a wrong password",
                of_port(site.doors.sasl),
                &["refuses this client", "uthentication"],
                of_login,
            )
        },
        Case {
            kafka: login,
            ..log(
                "no login is wanted",
                site.engines.kafka.brokers(),
                &["refuses this client"],
                of_login,
            )
        },
        log(
            "TLS is wanted",
            of_port(site.doors.tls),
            &["it speaks TLS"],
            "Wakelog speaks no TLS",
        ),
        Case {
            kafka: "\"security.protocol\" = \"ssl\"\n".to_owned(),
            ..Case::new(
                "TLS is demanded",
                &["security.protocol is ssl", "speaks no TLS"],
                "plaintext",
            )
        },
    ];
    check_all(&site, cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_can_not_keep_what_it_is_to_keep_is_named() {
    let site = Site::shared().await;
    let too_few = "larger than the number of brokers";
    let cases = vec![
        Case {
            topic: Some((2, &[])),
            ..Case::new(
                "too few replicas",
                &["1 replicas", "asks for 2"],
                "kafka-reassign-partitions.sh",
            )
            .with("WAKELOG_REPLICATION", "2")
        },
        Case::new("too few brokers", &["can't have 3 replicas"], too_few)
            .with("WAKELOG_REPLICATION", "3")
            .of(ALONE),
        // It would make the tables first.
        Case {
            has_tables: false,
            doctor: Some(("", "")),
            ..Case::new("too few brokers, no tables", &["can't have 3 replicas"], too_few)
                .with("WAKELOG_REPLICATION", "3")
                .of(&[Start::Up])
        },
        Case {
            topic: Some((2, &[("cleanup.policy", "compact")])),
            ..Case::new(
                "compaction",
                &["cleanup.policy is \"compact\"", "it must be"],
                "kafka-configs.sh",
            )
        },
        Case {
            topic: Some((2, &[])),
            damage: "INSERT INTO stream_progress (topic, partition, epoch, next_offset, last_record_crc)
                     VALUES ('TOPIC', 2, 1, 7, 7)",
            ..Case::new(
                "fewer partitions",
                &["has 2 partitions", "its partition 2"],
                "made again with fewer",
            )
        },
    ];
    check_all(&site, cases).await;
}

fn archive(name: &'static str, says: &[&str], hint: &'static str) -> Case {
    Case::new(name, says, hint)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_is_away_or_refuses_is_named() {
    let site = Site::shared().await;
    let read_only = S3Proxy::before(site.engines.s3.port()).await;
    read_only.set(Fault::ReadOnly);
    let away = |name, endpoint: String, says: &[&str]| {
        archive(name, says, "is --s3-endpoint right")
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
        archive("a wrong secret", &["SignatureDoesNotMatch"], keys)
            .with("WAKELOG_S3_SECRET_KEY", WRONG_SECRET)
            .of(OF_BUCKET),
        archive("an unknown key", &["refuses bucket", "access key"], keys)
            .with("WAKELOG_S3_ACCESS_KEY", "stranger")
            .of(OF_BUCKET),
        archive(
            "no bucket",
            &["no such bucket: nowhere"],
            "Wakelog creates no bucket",
        )
        .with("WAKELOG_S3_BUCKET", "nowhere")
        .of(OF_BUCKET),
        archive("read-only", &["takes no writes", "AccessDenied"], "take writes")
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
        let found = findings.iter().find(|finding| finding.message.contains(text));
        let found = found.unwrap_or_else(|| panic!("{text} is not in {findings:#?}"));
        assert!(found.level == "warn" && !found.mend.is_empty(), "{found:?}");
    }
    let log = goes_up(&scene, Start::Archive).await;
    for text in said {
        assert!(log.contains(text), "{text} is not in\n{log}");
    }

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
        let found = findings.iter().find(|finding| finding.message.contains(text));
        let found = found.unwrap_or_else(|| panic!("{text} is not in {findings:#?}"));
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
