//! A cluster of one or three brokers: started, killed, frozen, cut off one by one; what its topics hold.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::broker::Broker;
use super::links::{Link, Links};
use crate::support::PATIENCE;
use crate::support::process::free_port;

/// Brokers of a cluster that may lose one.
pub const CLUSTER: usize = 3;

/// Where groups keep their offsets. The leader of a group's partition coordinates it.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// Its partitions, as `kafka.sh` sets them.
const OFFSETS_PARTITIONS: i32 = 8;

/// All brokers of a cluster must have the same one.
const CLUSTER_ID: &str = "d2FrZWxvZy10ZXN0cy0wMA";

/// Memory of each broker of a cluster.
const HEAP_MB: &str = "512";

/// A cluster, in a folder.
pub struct Kafka {
    brokers: Vec<Broker>,
    between: Option<Between>,
}

/// Ports of a broker that do not let everybody in.
#[derive(Debug, Clone, Copy)]
pub struct Doors {
    pub sasl: u16,
    pub tls: u16,
}

/// What stands between the brokers of a cluster, and before each of them.
struct Between {
    links: Links,
    /// Where clients find each broker.
    client_ports: Vec<u16>,
}

impl Kafka {
    /// A broker that is not started yet, and is all there is. `settings` are lines of its configuration.
    pub fn prepare(folder: PathBuf, settings: &[&str]) -> Self {
        Self {
            brokers: vec![Broker::prepare(folder, settings)],
            between: None,
        }
    }

    /// Three brokers that are not started yet: a record is acknowledged once two of them have it. Each finds the others, and
    /// clients find each, through links of their own.
    pub fn prepare_cluster(folder: &std::path::Path, settings: &[&str]) -> Self {
        let mut brokers: Vec<Broker> = (1..=CLUSTER)
            .map(|number| Broker::prepare(folder.join(format!("broker-{number}")), settings))
            .collect();
        let client_ports: Vec<u16> = brokers.iter().map(|_| free_port()).collect();
        let mut ends = Vec::new();
        for (number, broker) in brokers.iter().enumerate() {
            ends.push((loopback(1, 1, client_ports[number]), loopback(0, 1, broker.port)));
        }
        for (from, _) in brokers.iter().enumerate() {
            for (to, broker) in brokers.iter().enumerate().filter(|(to, _)| *to != from) {
                for port in [broker.internal_port, broker.controller_port] {
                    ends.push((seen_from(from, to, port), loopback(0, 1, port)));
                }
            }
        }
        let voters: Vec<String> = brokers
            .iter()
            .enumerate()
            .map(|(number, broker)| format!("{}@{}:{}", number + 1, name(number), broker.controller_port))
            .collect();
        for (number, broker) in brokers.iter_mut().enumerate() {
            let settings = settings_of(number, broker, client_ports[number], &voters.join(","));
            let hosts = broker.folder().with_extension("hosts");
            std::fs::create_dir_all(folder).expect("a folder");
            std::fs::write(&hosts, hosts_of(number)).expect("a hosts file");
            let variables = vec![
                ("KAFKA_CLUSTER_ID", CLUSTER_ID.to_owned()),
                ("KAFKA_HEAP_MB", HEAP_MB.to_owned()),
                ("KAFKA_HOSTS_FILE", hosts.display().to_string()),
            ];
            broker.configure(settings, variables);
        }
        Self {
            brokers,
            between: Some(Between {
                links: Links::serve(ends),
                client_ports,
            }),
        }
    }

    /// Gives a broker that is all there is further doors, before its first start: one wants a password, one wants TLS.
    pub fn add_doors(&mut self, key_and_certificate: &std::path::Path, password: &str) -> Doors {
        let doors = Doors {
            sasl: free_port(),
            tls: free_port(),
        };
        let broker = self.brokers.first_mut().expect("a broker");
        let (port, controller) = (broker.port, broker.controller_port);
        let open = format!("PLAINTEXT://127.0.0.1:{port}");
        let others = format!(
            "SASL_PLAINTEXT://127.0.0.1:{},SSL://127.0.0.1:{}",
            doors.sasl, doors.tls
        );
        let login = "org.apache.kafka.common.security.plain.PlainLoginModule required";
        let settings = vec![
            format!("listeners={open},{others},CONTROLLER://127.0.0.1:{controller}"),
            format!("advertised.listeners={open},{others}"),
            "inter.broker.listener.name=PLAINTEXT".to_owned(),
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL"
                .to_owned(),
            "sasl.enabled.mechanisms=PLAIN".to_owned(),
            format!(
                "listener.name.sasl_plaintext.plain.sasl.jaas.config={login} user_wakelog=\"{password}\";"
            ),
            "ssl.keystore.type=PEM".to_owned(),
            format!("ssl.keystore.location={}", key_and_certificate.display()),
        ];
        broker.configure(settings, Vec::new());
        doors
    }

    /// Drops what each of these partitions holds below an offset, as retention does.
    pub async fn eat(&self, topic: &str, below: &[(i32, i64)]) {
        let mut eaten = TopicPartitionList::new();
        for (partition, offset) in below {
            eaten
                .add_partition_offset(topic, *partition, Offset::Offset(*offset))
                .expect("an offset");
        }
        let deleted = self.admin().delete_records(&eaten, &AdminOptions::new()).await;
        for partition in deleted.expect("an answer").elements() {
            partition.error().expect("the head is eaten");
        }
    }

    /// Has all brokers run in containers.
    pub fn set_in_container(&mut self) {
        self.brokers.iter_mut().for_each(Broker::set_in_container);
    }

    /// Starts all brokers that do not run, and waits until they answer.
    pub fn start(&self) {
        let stopped: Vec<&Broker> = self
            .brokers
            .iter()
            .filter(|broker| !broker.is_running())
            .collect();
        stopped.iter().for_each(|broker| broker.spawn());
        stopped.iter().for_each(|broker| broker.wait());
    }

    /// `kill -9` of all brokers.
    pub fn kill(&self) {
        self.brokers.iter().for_each(Broker::kill);
    }

    /// Whether all processes are there; one that ended by itself is forgotten.
    pub fn is_running(&self) -> bool {
        self.brokers.iter().all(Broker::is_running)
    }

    /// How many brokers there are.
    pub fn count(&self) -> usize {
        self.brokers.len()
    }

    /// One of them, from 0; its id in the cluster is one more.
    pub fn broker(&self, number: usize) -> &Broker {
        &self.brokers[number]
    }

    /// The link from clients to a broker of a cluster.
    pub fn to_clients(&self, number: usize) -> &Link {
        self.between().links.get(number)
    }

    /// The links between a broker of a cluster and the other ones, both ways.
    pub fn to_others(&self, number: usize) -> Vec<&Link> {
        let links = &self.between().links;
        let pairs = (0..CLUSTER).flat_map(|from| (0..CLUSTER).map(move |to| (from, to)));
        let pairs = pairs.filter(|(from, to)| from != to);
        pairs
            .enumerate()
            .filter(|(_, (from, to))| *from == number || *to == number)
            .flat_map(|(pair, _)| [2 * pair, 2 * pair + 1])
            .map(|link| links.get(CLUSTER + link))
            .collect()
    }

    fn between(&self) -> &Between {
        self.between.as_ref().expect("a cluster")
    }

    /// Where clients find it.
    pub fn brokers(&self) -> String {
        let ports: Vec<u16> = match &self.between {
            None => self.brokers.iter().map(|broker| broker.port).collect(),
            Some(between) => between.client_ports.clone(),
        };
        let addresses = ports.iter().enumerate().map(|(number, port)| match self.between {
            None => format!("127.0.0.1:{port}"),
            Some(_) => loopback(1, 1, ports[number]).to_string(),
        });
        addresses.collect::<Vec<_>>().join(",")
    }

    /// The broker that leads a partition, from 0, as broker `asked` sees it: one that is cut off goes on believing in itself.
    pub fn leader(&self, topic: &str, partition: i32, asked: usize) -> usize {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let metadata = self.brokers[asked].metadata(asked, topic);
            let leader = metadata.and_then(|metadata| {
                let topic = metadata.topics().first()?;
                let partition = topic.partitions().iter().find(|found| found.id() == partition)?;
                usize::try_from(partition.leader()).ok()?.checked_sub(1)
            });
            if let Some(leader) = leader {
                return leader;
            }
            assert!(Instant::now() < deadline, "partition {partition} has no leader");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The broker that coordinates a group, as broker `asked` sees it.
    pub fn coordinator(&self, group: &str, asked: usize) -> usize {
        // As brokers do it: the hash of a Java string.
        let hash = group.encode_utf16().fold(0_i32, |hash, unit| {
            hash.wrapping_mul(31).wrapping_add(i32::from(unit))
        });
        self.leader(OFFSETS_TOPIC, (hash & i32::MAX) % OFFSETS_PARTITIONS, asked)
    }

    /// The leader and the replicas in sync of each partition, as each broker sees them.
    pub fn views(&self, topic: &str) -> String {
        let view = |(number, broker): (usize, &Broker)| {
            let Some(metadata) = broker.metadata(number, topic) else {
                return format!("broker {number}: no answer\n");
            };
            let partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
            let each = partitions
                .map(|found| format!("{}: leader {} of {:?}; ", found.id(), found.leader(), found.isr()));
            format!("broker {number}: {}\n", each.collect::<String>())
        };
        self.brokers.iter().enumerate().map(view).collect()
    }

    /// Whether all replicas of all partitions are in sync.
    pub fn is_in_sync(&self, topic: &str) -> bool {
        let consumer: BaseConsumer = self.config().create().expect("a client");
        let metadata = consumer.fetch_metadata(Some(topic), Duration::from_secs(5));
        metadata.is_ok_and(|metadata| {
            let mut partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
            partitions.all(|partition| partition.isr().len() == self.count())
        })
    }

    /// Waits until they are.
    pub fn wait_in_sync(&self, topic: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.is_in_sync(topic) {
            assert!(Instant::now() < deadline, "replicas of {topic} stay behind");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Its administration.
    pub fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config().create().expect("an admin client")
    }

    /// Creates a topic as a service would; it keeps its records for ever.
    pub async fn create_topic(&self, topic: &str, partitions: i32) {
        self.create_topic_with(topic, partitions, &[("retention.ms", "-1")])
            .await;
    }

    /// The same with these settings.
    pub async fn create_topic_with(&self, topic: &str, partitions: i32, settings: &[(&str, &str)]) {
        let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(self.count() as i32))
            .set("message.timestamp.type", "LogAppendTime");
        for (name, value) in settings {
            new = new.set(name, value);
        }
        let created = self
            .admin()
            .create_topics(&[new], &AdminOptions::new())
            .await
            .expect("an answer");
        for outcome in created {
            outcome.expect("the topic is created");
        }
    }

    /// Deletes a topic, and waits until it is gone.
    pub async fn delete_topic(&self, topic: &str) {
        let admin = self.admin();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let outcomes = admin.delete_topics(&[topic], &AdminOptions::new()).await;
            let outcome = outcomes.expect("an answer").pop().expect("an outcome");
            if matches!(outcome, Err((_, RDKafkaErrorCode::UnknownTopicOrPartition))) {
                return;
            }
            assert!(Instant::now() < deadline, "the topic stays: {outcome:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// How many partitions a topic has; `None` if there is none.
    pub fn partitions(&self, topic: &str) -> Option<usize> {
        let consumer: BaseConsumer = self.config().create().expect("a client");
        let metadata = consumer.fetch_metadata(None, Duration::from_secs(30));
        let metadata = metadata.expect("the broker answers");
        let found = metadata.topics().iter().find(|found| found.name() == topic)?;
        Some(found.partitions().len())
    }

    /// The groups whose names begin with `prefix`.
    pub fn groups(&self, prefix: &str) -> Vec<String> {
        let consumer: BaseConsumer = self.config().create().expect("a client");
        let groups = consumer.fetch_group_list(None, Duration::from_secs(30));
        let groups = groups.expect("the broker answers");
        let names = groups.groups().iter().map(|group| group.name().to_owned());
        names.filter(|name| name.starts_with(prefix)).collect()
    }

    /// The first and the next offset of a partition.
    pub fn watermarks(&self, topic: &str, partition: i32) -> (i64, i64) {
        let consumer: BaseConsumer = self.config().create().expect("a client");
        let marks = consumer.fetch_watermarks(topic, partition, Duration::from_secs(10));
        marks.expect("watermarks")
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.brokers());
        config
    }
}

/// What a node is called by the others.
fn name(number: usize) -> String {
    format!("node-{}", number + 1)
}

fn loopback(third: u8, fourth: u8, port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(127, 0, third, fourth), port))
}

/// Where broker `from` finds broker `to`: an address that nobody else uses.
fn seen_from(from: usize, to: usize, port: u16) -> SocketAddr {
    loopback(10 + from as u8, 10 + to as u8, port)
}

/// Where broker `number` finds each broker.
fn hosts_of(number: usize) -> String {
    let lines = (0..CLUSTER).map(|to| match to == number {
        true => format!("127.0.0.1 {}\n", name(to)),
        false => format!("{} {}\n", seen_from(number, to, 0).ip(), name(to)),
    });
    format!("127.0.0.1 localhost\n{}", lines.collect::<String>())
}

fn settings_of(number: usize, broker: &Broker, client_port: u16, voters: &str) -> Vec<String> {
    let (port, internal, controller) = (broker.port, broker.internal_port, broker.controller_port);
    let (client, own) = (loopback(1, 1, client_port), name(number));
    vec![
        format!("node.id={}", number + 1),
        format!("controller.quorum.voters={voters}"),
        format!(
            "listeners=PLAINTEXT://127.0.0.1:{port},INTERNAL://127.0.0.1:{internal},CONTROLLER://127.0.0.1:{controller}"
        ),
        // The controller's as well: followers find the leader of the quorum by it, past its place among the voters.
        format!(
            "advertised.listeners=PLAINTEXT://{client},INTERNAL://{own}:{internal},CONTROLLER://{own}:{controller}"
        ),
        "inter.broker.listener.name=INTERNAL".to_owned(),
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT"
            .to_owned(),
        "default.replication.factor=3".to_owned(),
        "min.insync.replicas=2".to_owned(),
        "offsets.topic.replication.factor=3".to_owned(),
        "transaction.state.log.replication.factor=3".to_owned(),
        "transaction.state.log.min.isr=2".to_owned(),
        "share.coordinator.state.topic.replication.factor=3".to_owned(),
        "share.coordinator.state.topic.min.isr=2".to_owned(),
        "unclean.leader.election.enable=false".to_owned(),
    ]
}
