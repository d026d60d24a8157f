//! One broker of the cluster, or the only one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Place, one_of};
use crate::schedule::{BrokerFault, Fault, Strike};
use crate::support::native::fleet::PARTITIONS;
use crate::support::native::kafka::{Kafka, OFFSETS_TOPIC};

/// How long replicas may take to be in sync again. Until then the loss of a second broker would be another fault.
const IN_SYNC_WITHIN: Duration = Duration::from_secs(90);

pub(super) async fn strike_all(place: Arc<Place>, strikes: Vec<Strike>, length: Duration) {
    for strike in strikes {
        if !place.is_due(&strike, length).await {
            break;
        }
        let Fault::Broker(fault) = strike.fault else {
            continue;
        };
        let broker = on_its_own_thread(&place, move |place| chosen(place, &strike, fault)).await;
        let from = place.availability.now();
        on_its_own_thread(&place, move |place| begin(&place.engines.kafka, broker, fault)).await;
        tokio::time::sleep(strike.lasts).await;
        on_its_own_thread(&place, move |place| mend(&place.engines.kafka, broker, fault)).await;
        place.mended(&strike, from, format!("broker {}", broker + 1));
        let in_sync = on_its_own_thread(&place, gets_in_sync).await;
        if !in_sync {
            place.fail(format!("replicas stay behind {IN_SYNC_WITHIN:?} after {fault:?}"));
        }
    }
}

/// The broker's client and its process are waited for by a thread.
async fn on_its_own_thread<T: Send + 'static>(
    place: &Arc<Place>,
    act: impl FnOnce(&Place) -> T + Send + 'static,
) -> T {
    let place = place.clone();
    let acted = tokio::task::spawn_blocking(move || act(&place)).await;
    acted.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
}

/// Who leads a partition, or coordinates the group.
fn chosen(place: &Place, strike: &Strike, fault: BrokerFault) -> usize {
    let kafka = &place.engines.kafka;
    let asked = one_of(strike, 1, kafka.count());
    match fault {
        BrokerFault::CoordinatorKilled => kafka.coordinator(&place.topic, asked),
        _ => kafka.leader(&place.topic, one_of(strike, 0, PARTITIONS as usize) as i32, asked),
    }
}

fn begin(kafka: &Kafka, broker: usize, fault: BrokerFault) {
    match fault {
        BrokerFault::Killed | BrokerFault::CoordinatorKilled => kafka.broker(broker).kill(),
        BrokerFault::Frozen => kafka.broker(broker).freeze(),
        BrokerFault::Alone => kafka.to_others(broker).iter().for_each(|link| link.cut()),
        BrokerFault::Unreachable => kafka.to_clients(broker).cut(),
    }
}

fn mend(kafka: &Kafka, broker: usize, fault: BrokerFault) {
    match fault {
        BrokerFault::Killed | BrokerFault::CoordinatorKilled => kafka.broker(broker).start(),
        BrokerFault::Frozen => kafka.broker(broker).thaw(),
        BrokerFault::Alone => kafka.to_others(broker).iter().for_each(|link| link.mend()),
        BrokerFault::Unreachable => kafka.to_clients(broker).mend(),
    }
}

fn gets_in_sync(place: &Place) -> bool {
    let deadline = Instant::now() + IN_SYNC_WITHIN;
    let kafka = &place.engines.kafka;
    while !(kafka.is_in_sync(&place.topic) && kafka.is_in_sync(OFFSETS_TOPIC)) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    true
}
