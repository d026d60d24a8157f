//! The log, and the topic in it.

use rdkafka::mocking::MockCluster;
use rdkafka::types::RDKafkaApiKey;

use super::case::{ALONE, Case, Start, check_all};
use super::site::{Site, WRONG_SECRET};
use super::{BROKERS, NOBODY, no_host};

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

/// Invariant acked-is-durable: a topic that would not keep what is acknowledged is not used.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_or_no_service_starts_on_the_topic() {
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
