//! What the tests of this folder share: the embedded broker, topics, and a stand-in for a service that consumes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tansu_broker::broker::Broker;
use tansu_broker::coordinator::group::administrator::Controller;
use tansu_storage::StorageContainer;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use url::Url;
use uuid::Uuid;
use wakelog_stream::{ConsumerEvent, GroupConsumer, Options, PartitionOwner, Producer, ensure_topic};

/// How long a test waits for anything. Only there to end it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A broker of its own for one test, or the one that `WAKELOG_TEST_BROKERS` names.
pub(crate) struct Log {
    brokers: String,
    embedded: Option<(Runtime, TempDir)>,
}

impl Log {
    pub(crate) fn start() -> Self {
        // `RUST_LOG` shows what the broker and the clients say. Only the first test of a process sets it up.
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_test_writer()
            .try_init()
            .ok();
        if let Ok(brokers) = std::env::var("WAKELOG_TEST_BROKERS") {
            return Self {
                brokers,
                embedded: None,
            };
        }
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let listener = Url::parse(&format!("tcp://127.0.0.1:{port}")).unwrap();
        // The path is taken relative to the working folder, except that a second slash makes it absolute.
        let storage = Url::parse(&format!("sqlite:///{}/log.db", folder.path().display())).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.spawn(async move {
            let broker = Broker::<Controller<StorageContainer>, StorageContainer>::builder()
                .node_id(111)
                .cluster_id("test")
                .incarnation_id(Uuid::now_v7())
                .advertised_listener(listener.clone())
                .otlp_endpoint_url(None)
                .schema_registry(None)
                .storage(storage)
                .listener(listener)
                .authentication(false)
                .tls_server_config(None)
                .silent(true)
                .build()
                .await
                .unwrap();
            broker.main(tokio::time::Instant::now()).await.unwrap();
        });
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "the broker does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self {
            brokers: format!("127.0.0.1:{port}"),
            embedded: Some((runtime, folder)),
        }
    }

    /// A topic that no other test has.
    pub(crate) async fn topic(&self, partitions: i32) -> Options {
        let options = self.options(partitions);
        let report = ensure_topic(&options).await.unwrap();
        assert!(report.created);
        assert_eq!(report.partitions, partitions);
        options
    }

    pub(crate) fn options(&self, partitions: i32) -> Options {
        let name = format!("test-{}", Uuid::now_v7());
        let options = match self.embedded {
            Some(_) => Options::embedded(&self.brokers, &name),
            None => Options::new(&self.brokers, &name),
        };
        Options {
            partitions,
            group: name,
            session_timeout: Duration::from_secs(6),
            ..options
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Some((runtime, _folder)) = self.embedded.take() {
            runtime.shutdown_background();
        }
    }
}

/// Publishes values to a partition and waits for all of them; their offsets.
pub(crate) async fn publish(
    producer: &Producer,
    partition: i32,
    values: impl IntoIterator<Item = Vec<u8>>,
) -> Vec<i64> {
    let mut deliveries = Vec::new();
    for value in values {
        deliveries.push(producer.publish(partition, "key", &value).unwrap());
    }
    let mut offsets = Vec::new();
    for delivery in deliveries {
        offsets.push(delivery.await.unwrap());
    }
    offsets
}

/// Polls until it holds, or panics.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What a database is to a service: next offset of each partition, and what was consumed.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) next: Mutex<BTreeMap<i32, i64>>,
    pub(crate) consumed: Mutex<Vec<(i32, i64, Vec<u8>)>>,
}

impl Store {
    pub(crate) fn count(&self) -> usize {
        self.consumed.lock().unwrap().len()
    }

    /// The values of a partition, after checking that its offsets came once each and in order from `start`.
    pub(crate) fn in_order(&self, partition: i32, start: i64) -> Vec<Vec<u8>> {
        let consumed = self.consumed.lock().unwrap();
        let of_partition = consumed
            .iter()
            .filter(|(of, ..)| *of == partition)
            .collect::<Vec<_>>();
        for (expected, (_, offset, _)) in (start..).zip(&of_partition) {
            assert_eq!(*offset, expected, "partition {partition}");
        }
        of_partition.iter().map(|(_, _, value)| value.clone()).collect()
    }
}

/// A stand-in for a service: takes partitions at what the store says, reads each on a task, lets go when that ended.
pub(crate) struct Service {
    pub(crate) store: Arc<Store>,
    pub(crate) owned: Mutex<BTreeSet<i32>>,
    pub(crate) revokes: Mutex<usize>,
    pub(crate) errors: Mutex<Vec<(i32, String)>>,
    pub(crate) fatal: Mutex<Option<String>>,
    /// How many more times it refuses a partition.
    pub(crate) refusals: Mutex<usize>,
    readers: Mutex<BTreeMap<i32, JoinHandle<()>>>,
    /// What it does with each batch, before it counts as consumed.
    pause: Duration,
}

pub(crate) struct Running {
    pub(crate) service: Arc<Service>,
    pub(crate) consumer: GroupConsumer,
    pub(crate) events: JoinHandle<()>,
}

impl Service {
    pub(crate) fn new(store: &Arc<Store>, pause: Duration) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(store),
            owned: Mutex::default(),
            revokes: Mutex::default(),
            errors: Mutex::default(),
            fatal: Mutex::default(),
            refusals: Mutex::default(),
            readers: Mutex::default(),
            pause,
        })
    }

    pub(crate) fn owned(&self) -> usize {
        self.owned.lock().unwrap().len()
    }

    pub(crate) fn start(self: &Arc<Self>, options: &Options) -> Running {
        let owner = Arc::new(Owner(Arc::clone(self)));
        let (consumer, events) = GroupConsumer::start(options, owner).unwrap();
        let events = tokio::spawn(Arc::clone(self).handle(events));
        Running {
            service: Arc::clone(self),
            consumer,
            events,
        }
    }

    async fn handle(self: Arc<Self>, mut events: mpsc::Receiver<ConsumerEvent>) {
        while let Some(event) = events.recv().await {
            match event {
                ConsumerEvent::Assigned { partition, records } => {
                    self.owned.lock().unwrap().insert(partition);
                    let reader = tokio::spawn(Arc::clone(&self).read(partition, records));
                    self.readers.lock().unwrap().insert(partition, reader);
                }
                ConsumerEvent::Revoked { partition } => {
                    self.owned.lock().unwrap().remove(&partition);
                    *self.revokes.lock().unwrap() += 1;
                }
                ConsumerEvent::PartitionError { partition, error } => {
                    self.errors.lock().unwrap().push((partition, error.to_string()));
                }
                ConsumerEvent::Fatal(error) => *self.fatal.lock().unwrap() = Some(error.to_string()),
            }
        }
    }

    async fn read(self: Arc<Self>, partition: i32, mut records: wakelog_stream::PartitionRecords) {
        while let Some(batch) = records.next_batch(100, 1 << 20).await {
            tokio::time::sleep(self.pause).await;
            let next = batch.last().unwrap().offset + 1;
            let mut consumed = self.store.consumed.lock().unwrap();
            consumed.extend(
                batch
                    .into_iter()
                    .map(|record| (partition, record.offset, record.value.to_vec())),
            );
            self.store.next.lock().unwrap().insert(partition, next);
        }
    }
}

impl Running {
    pub(crate) async fn shutdown(self) {
        self.consumer.shutdown(PATIENCE).await.unwrap();
        self.events.await.unwrap();
        assert_eq!(self.service.owned(), 0);
    }
}

struct Owner(Arc<Service>);

impl PartitionOwner for Owner {
    fn assigned(
        &self,
        partition: i32,
    ) -> BoxFuture<'static, Result<i64, Box<dyn std::error::Error + Send + Sync>>> {
        let service = Arc::clone(&self.0);
        Box::pin(async move {
            let mut refusals = service.refusals.lock().unwrap();
            if *refusals > 0 {
                *refusals -= 1;
                return Err("not now".into());
            }
            Ok(service
                .store
                .next
                .lock()
                .unwrap()
                .get(&partition)
                .copied()
                .unwrap_or_default())
        })
    }

    fn revoked(&self, partition: i32, _lost: bool) -> BoxFuture<'static, ()> {
        let reader = self.0.readers.lock().unwrap().remove(&partition);
        Box::pin(async move {
            if let Some(reader) = reader {
                reader.await.unwrap();
            }
        })
    }
}
