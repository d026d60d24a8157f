use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wakelog_stream::{Options, Producer};

use crate::support::{Log, PATIENCE, Service, Store, publish, until};

fn values(partition: i32, count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| format!("{partition}/{number}").into_bytes())
        .collect()
}

#[tokio::test]
async fn every_record_is_consumed_once_and_in_order() {
    let log = Log::start();
    let options = log.topic(4).await;
    let producer = Producer::new(&options).unwrap();
    for partition in 0..4 {
        publish(&producer, partition, values(partition, 200)).await;
    }
    let store = Arc::new(Store::default());
    let running = Service::new(&store, Duration::ZERO).start(&options);
    until("what was there", || store.count() == 800).await;
    for partition in 0..4 {
        publish(&producer, partition, values(partition, 50)).await;
    }
    until("what came later", || store.count() == 1000).await;
    for partition in 0..4 {
        let mut expected = values(partition, 200);
        expected.extend(values(partition, 50));
        assert_eq!(store.in_order(partition, 0), expected);
    }
    running.consumer.committed(0, 250);
    running.shutdown().await;
}

#[tokio::test]
async fn the_owner_says_where_a_partition_starts() {
    let log = Log::start();
    let options = log.topic(3).await;
    let producer = Producer::new(&options).unwrap();
    for partition in 0..3 {
        publish(&producer, partition, values(partition, 30)).await;
    }
    let store = Arc::new(Store::default());
    store.next.lock().unwrap().extend([(0, 0), (1, 29), (2, 30)]);
    let running = Service::new(&store, Duration::ZERO).start(&options);
    until("the rest of each", || store.count() == 31).await;
    publish(&producer, 2, values(2, 1)).await;
    until("a new one", || store.count() == 32).await;
    assert_eq!(store.in_order(0, 0).len(), 30);
    assert_eq!(store.in_order(1, 29), [b"1/29"]);
    assert_eq!(store.in_order(2, 30), [b"2/0"]);
    running.shutdown().await;
}

#[tokio::test]
async fn partitions_move_to_a_second_member_and_back_and_nothing_is_lost() {
    const PARTITIONS: i32 = 6;
    let log = Log::start();
    let options = log.topic(PARTITIONS).await;
    let producer = Producer::new(&options).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let publishing = tokio::spawn(async move {
        let mut rounds = 0;
        while !stopped.load(Ordering::Acquire) {
            for partition in 0..PARTITIONS {
                publish(&producer, partition, values(partition, 5)).await;
            }
            rounds += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        rounds * 5
    });

    let store = Arc::new(Store::default());
    let first = Service::new(&store, Duration::from_millis(1)).start(&options);
    until("the first has all", || first.service.owned() == 6).await;
    let second = Service::new(&store, Duration::from_millis(1)).start(&options);
    until("they share", || {
        first.service.owned() == 3 && second.service.owned() == 3
    })
    .await;
    assert_eq!(
        *first.service.revokes.lock().unwrap(),
        3,
        "what the first keeps is not taken from it"
    );
    let shared_at = store.count();
    until("both go on", || store.count() > shared_at + 300).await;
    second.shutdown().await;
    until("the first has all again", || first.service.owned() == 6).await;

    stop.store(true, Ordering::Release);
    let count = publishing.await.unwrap();
    until("all is consumed", || store.count() >= count * PARTITIONS as usize).await;
    for partition in 0..PARTITIONS {
        assert_eq!(store.in_order(partition, 0).len(), count);
    }
    first.shutdown().await;
}

#[tokio::test]
async fn a_slow_service_is_never_given_more_than_it_has_room_for_and_loses_nothing() {
    const COUNT: usize = 40;
    let log = Log::start();
    let topic = log.topic(2).await;
    let producer = Producer::new(&topic).unwrap();
    let body = |partition: i32, number: usize| vec![(partition * 100) as u8 + number as u8; 400_000];
    for partition in 0..2 {
        publish(
            &producer,
            partition,
            (0..COUNT).map(|number| body(partition, number)),
        )
        .await;
    }
    let options = Options {
        consumer_queue_records: 2,
        consumer_buffer_bytes: 1 << 20,
        ..topic
    };
    let store = Arc::new(Store::default());
    let running = Service::new(&store, Duration::from_millis(50)).start(&options);
    until("all is consumed", || store.count() >= 2 * COUNT).await;
    for partition in 0..2 {
        let expected = (0..COUNT)
            .map(|number| body(partition, number))
            .collect::<Vec<_>>();
        assert!(store.in_order(partition, 0) == expected, "partition {partition}");
    }
    running.shutdown().await;
}

#[tokio::test]
async fn an_owner_that_refuses_is_asked_again() {
    let log = Log::start();
    let options = log.topic(2).await;
    let producer = Producer::new(&options).unwrap();
    for partition in 0..2 {
        publish(&producer, partition, values(partition, 10)).await;
    }
    let store = Arc::new(Store::default());
    let service = Service::new(&store, Duration::ZERO);
    *service.refusals.lock().unwrap() = 3;
    let running = service.start(&options);
    until("all is consumed in the end", || store.count() == 20).await;
    let errors = service.errors.lock().unwrap().clone();
    assert_eq!(errors.len(), 3);
    assert!(
        errors.iter().all(|(_, error)| error.contains("not now")),
        "{errors:?}"
    );
    running.shutdown().await;
}

#[tokio::test]
async fn an_owner_that_always_refuses_is_given_up() {
    let log = Log::start();
    let options = Options {
        rejoin_limit: 2,
        ..log.topic(1).await
    };
    let service = Service::new(&Arc::default(), Duration::ZERO);
    *service.refusals.lock().unwrap() = usize::MAX;
    let running = service.start(&options);
    until("it gives up", || service.fatal.lock().unwrap().is_some()).await;
    let fatal = service.fatal.lock().unwrap().clone().unwrap();
    assert!(fatal.contains("2 times") && fatal.contains("not now"), "{fatal}");
    assert_eq!(service.owned(), 0);
    // The events have ended with it.
    running.shutdown().await;
}

#[tokio::test]
async fn a_rejoin_asks_the_owner_again() {
    let log = Log::start();
    let options = log.topic(1).await;
    let producer = Producer::new(&options).unwrap();
    publish(&producer, 0, values(0, 10)).await;
    let store = Arc::new(Store::default());
    let running = Service::new(&store, Duration::ZERO).start(&options);
    until("all is consumed", || store.count() == 10).await;
    store.consumed.lock().unwrap().clear();
    store.next.lock().unwrap().insert(0, 4);
    running.consumer.rejoin("another one owns it");
    until("it is read again from there", || store.count() == 6).await;
    assert_eq!(store.in_order(0, 4).len(), 6);
    assert_eq!(*running.service.revokes.lock().unwrap(), 1);
    running.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_leaves_the_group() {
    let log = Log::start();
    // So long a session time-out would be waited for if the member did not leave.
    let options = Options {
        session_timeout: Duration::from_secs(300),
        ..log.topic(2).await
    };
    let first = Service::new(&Arc::default(), Duration::ZERO).start(&options);
    until("the first has all", || first.service.owned() == 2).await;
    let started = Instant::now();
    first.shutdown().await;
    let second = Service::new(&Arc::default(), Duration::ZERO).start(&options);
    until("the second has all", || second.service.owned() == 2).await;
    assert!(started.elapsed() < PATIENCE);
    second.shutdown().await;
}

#[tokio::test]
async fn a_member_without_a_broker_can_be_shut_down() {
    let options = Options {
        session_timeout: Duration::from_secs(6),
        request_timeout: Duration::from_secs(1),
        ..Options::new("127.0.0.1:1", "nowhere")
    };
    let running = Service::new(&Arc::default(), Duration::ZERO).start(&options);
    tokio::time::sleep(Duration::from_millis(300)).await;
    running.shutdown().await;
}
