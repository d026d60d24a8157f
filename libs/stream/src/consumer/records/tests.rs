use bytes::Bytes;

use super::*;

fn record(offset: i64, bytes: usize) -> Record {
    Record::new(0, offset, Bytes::new(), Bytes::from(vec![0; bytes]), None)
}

fn offsets(batch: Option<Vec<Record>>) -> Vec<i64> {
    batch.unwrap().iter().map(|record| record.offset).collect()
}

fn queue_of(records: Vec<Record>) -> (mpsc::Sender<Record>, CancellationToken, PartitionRecords) {
    let (sender, receiver) = mpsc::channel(64);
    for record in records {
        sender.try_send(record).unwrap();
    }
    let revoked = CancellationToken::new();
    let records = PartitionRecords::new(receiver, revoked.clone());
    (sender, revoked, records)
}

#[tokio::test]
async fn a_batch_ends_at_either_limit_and_loses_nothing() {
    let (_sender, _revoked, mut records) = queue_of((0..8).map(|offset| record(offset, 100)).collect());
    assert_eq!(offsets(records.next_batch(3, 10_000).await), [0, 1, 2]);
    assert_eq!(offsets(records.next_batch(100, 250).await), [3, 4]);
    assert_eq!(offsets(records.next_batch(100, 10).await), [5]);
    assert_eq!(offsets(records.next_batch(100, 10_000).await), [6, 7]);
}

#[tokio::test]
async fn a_revoked_partition_ends_at_once() {
    let (_sender, revoked, mut records) = queue_of((0..3).map(|offset| record(offset, 100)).collect());
    assert_eq!(offsets(records.next_batch(2, 100).await), [0]);
    revoked.cancel();
    assert!(records.next_batch(2, 100).await.is_none());
}

#[tokio::test]
async fn a_stopped_partition_ends_after_its_last_record() {
    let (sender, _revoked, mut records) = queue_of((0..3).map(|offset| record(offset, 100)).collect());
    drop(sender);
    assert_eq!(offsets(records.next_batch(2, 10_000).await), [0, 1]);
    assert_eq!(offsets(records.next_batch(2, 10_000).await), [2]);
    assert!(records.next_batch(2, 10_000).await.is_none());
}

#[tokio::test]
async fn waiting_ends_with_the_revocation() {
    let (_sender, revoked, mut records) = queue_of(Vec::new());
    let waiting = tokio::spawn(async move { records.next_batch(1, 1).await.is_none() });
    tokio::task::yield_now().await;
    revoked.cancel();
    assert!(waiting.await.unwrap());
}
