//! Three brokers, of which two must have a record before it is acknowledged: one of them dies, freezes, is cut off from the
//! others or from its clients; then two at once.

use std::time::{Duration, Instant};

use crate::ends_well;
use crate::engine_outages::{RECOVERY, all_alive, refuses_for, under_load, wait_until_refused};
use crate::support::native::Engines;
use crate::support::native::fleet::PARTITIONS;
use crate::support::native::kafka::Kafka;

/// How soon the cluster gives a broker up; the defaults would make the faults pile up.
const SOON: [&str; 3] = [
    "broker.session.timeout.ms=4000",
    "broker.heartbeat.interval.ms=500",
    "replica.lag.time.max.ms=4000",
];

/// What happens to the leader of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Killed,
    Frozen,
    /// It reaches no other broker, and clients reach it.
    Alone,
    /// It is one of the cluster, and no client reaches it.
    Unreachable,
}

impl Fault {
    const ALL: [Self; 4] = [Self::Killed, Self::Frozen, Self::Alone, Self::Unreachable];

    fn strike(self, kafka: &Kafka, broker: usize) {
        match self {
            Self::Killed => kafka.broker(broker).kill(),
            Self::Frozen => kafka.broker(broker).freeze(),
            Self::Alone => kafka.to_others(broker).iter().for_each(|link| link.cut()),
            Self::Unreachable => kafka.to_clients(broker).cut(),
        }
    }

    fn mend(self, kafka: &Kafka, broker: usize) {
        match self {
            Self::Killed => kafka.broker(broker).start(),
            Self::Frozen => kafka.broker(broker).thaw(),
            Self::Alone => kafka.to_others(broker).iter().for_each(|link| link.mend()),
            Self::Unreachable => kafka.to_clients(broker).mend(),
        }
    }

    /// Whether the others lead its partitions meanwhile.
    fn moves_leaders(self) -> bool {
        self != Self::Unreachable
    }
}

/// Invariants acked-is-durable, no-silent-gap, exactly-once-fold: whichever way a leader is lost, the two others have what was
/// acknowledged and go on; with one broker alone nothing is acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_whichever_way_a_broker_is_lost() {
    let (mut stack, load) = under_load(Engines::cluster(&SOON).await, "brokers").await;
    for (partition, fault) in (0..PARTITIONS).zip(Fault::ALL) {
        let context = format!("{fault:?}");
        let (kafka, topic) = (&stack.engines().kafka, stack.topic());
        kafka.wait_in_sync(topic);
        let leader = kafka.leader(topic, partition, 0);
        fault.strike(kafka, leader);
        if fault.moves_leaders() {
            another_leads(kafka, topic, partition, leader).await;
            load.advance_within(100, &context, RECOVERY).await;
        }
        fault.mend(kafka, leader);
        load.advance_within(100, &format!("{context} and mended"), RECOVERY)
            .await;
        all_alive(&mut stack, &context);
    }
    stack.engines().kafka.wait_in_sync(stack.topic());
    for broker in [0, 1] {
        stack.engines().kafka.broker(broker).kill();
    }
    wait_until_refused(&mut stack, "one broker is left").await;
    refuses_for(&mut stack, Duration::from_secs(5), "one broker is left").await;
    stack.engines().kafka.start();
    load.advance_within(100, "all are back", RECOVERY).await;
    ends_well(&mut stack, load, "three brokers").await;
}

async fn another_leads(kafka: &Kafka, topic: &str, partition: i32, before: usize) {
    let deadline = Instant::now() + RECOVERY;
    let asked = (before + 1) % kafka.count();
    while kafka.leader(topic, partition, asked) == before {
        assert!(
            Instant::now() < deadline,
            "nobody takes partition {partition} over\n{}",
            kafka.views(topic)
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
