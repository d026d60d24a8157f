use bytes::Bytes;

use super::*;
use crate::record::Budget;

fn record(offset: i64) -> Record {
    Record::new(5, offset, Bytes::new(), Bytes::from(vec![0; 1000]), None)
}

fn slot(start: i64, queue_records: usize, budget: usize) -> (Slot, PartitionRecords) {
    Slot::new(5, start, queue_records, Budget::new(budget).share())
}

async fn take(records: &mut PartitionRecords, count: usize) -> Vec<i64> {
    let batch = records.next_batch(count, usize::MAX).await.unwrap();
    batch.iter().map(|record| record.offset).collect()
}

#[tokio::test]
async fn a_full_queue_pauses_and_half_an_empty_one_resumes() {
    let (mut slot, mut records) = slot(10, 4, 1 << 20);
    for offset in 10..14 {
        assert!(matches!(slot.offer(record(offset)), Offer::Taken));
    }
    assert!(matches!(slot.offer(record(14)), Offer::Full));
    slot.pause();
    assert!(slot.is_paused());
    assert!(!slot.relieve());

    // One place is free: the stash goes there, but fetching again is not worth it yet.
    assert_eq!(take(&mut records, 1).await, [10]);
    assert!(!slot.relieve());
    assert!(slot.is_paused());

    assert_eq!(take(&mut records, 2).await, [11, 12]);
    assert!(slot.relieve());
    assert!(!slot.is_paused());
    assert!(matches!(slot.offer(record(15)), Offer::Taken));
    assert_eq!(take(&mut records, 9).await, [13, 14, 15]);
}

#[tokio::test]
async fn a_spent_budget_pauses_too() {
    let (mut slot, mut records) = slot(0, 100, 2500);
    assert!(matches!(slot.offer(record(0)), Offer::Taken));
    assert!(matches!(slot.offer(record(1)), Offer::Taken));
    assert!(matches!(slot.offer(record(2)), Offer::Full));
    slot.pause();
    let held = records.next_batch(2, usize::MAX).await.unwrap();
    // Read, but still alive.
    assert!(!slot.relieve());
    drop(held);
    // The stash takes less than half of the budget.
    assert!(slot.relieve());
    assert_eq!(take(&mut records, 9).await, [2]);
}

#[tokio::test]
async fn a_full_queue_that_gets_room_in_time_needs_no_pause() {
    let (mut slot, mut records) = slot(0, 2, 1 << 20);
    assert!(matches!(slot.offer(record(0)), Offer::Taken));
    assert!(matches!(slot.offer(record(1)), Offer::Taken));
    assert!(matches!(slot.offer(record(2)), Offer::Full));
    assert!(!slot.unstash());
    assert_eq!(take(&mut records, 1).await, [0]);
    assert!(slot.unstash());
    assert!(!slot.is_paused());
    assert_eq!(take(&mut records, 9).await, [1, 2]);
    assert!(matches!(slot.offer(record(3)), Offer::Taken));
}

#[test]
fn a_record_in_spite_of_the_pause_is_noticed() {
    let (mut slot, _records) = slot(0, 1, 1 << 20);
    assert!(matches!(slot.offer(record(0)), Offer::Taken));
    assert!(matches!(slot.offer(record(1)), Offer::Full));
    slot.pause();
    assert!(matches!(slot.offer(record(2)), Offer::NotPaused));
}

#[tokio::test]
async fn a_repeated_record_is_dropped() {
    let (mut slot, mut records) = slot(7, 8, 1 << 20);
    for offset in [5, 6, 7, 7, 8] {
        assert!(matches!(slot.offer(record(offset)), Offer::Taken));
    }
    assert_eq!(take(&mut records, 9).await, [7, 8]);
}

#[tokio::test]
async fn a_gap_stops_the_partition_after_what_came_before() {
    let (mut slot, mut records) = slot(0, 8, 1 << 20);
    assert!(matches!(slot.offer(record(0)), Offer::Taken));
    let gap = slot.offer(record(2));
    assert!(
        matches!(
            gap,
            Offer::Gap(Error::OffsetGap {
                partition: 5,
                expected: 1,
                found: 2
            })
        ),
        "{gap:?}"
    );
    assert!(matches!(slot.offer(record(1)), Offer::Stopped));
    assert_eq!(take(&mut records, 9).await, [0]);
    assert!(records.next_batch(1, 1).await.is_none());
}

#[test]
fn a_partition_that_nobody_reads_stops() {
    let (mut slot, records) = slot(0, 8, 1 << 20);
    drop(records);
    assert!(matches!(slot.offer(record(0)), Offer::Stopped));
    assert!(slot.is_stopped());
}
