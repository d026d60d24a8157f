use super::{TRIES, UnreadablePartitions};
use crate::status::StopReason;

fn fail(partitions: &UnreadablePartitions, partition: i32, offset: i64, times: u32) {
    for time in 0..times {
        partitions.failed(partition, offset, format!("error {time}"));
    }
}

#[test]
fn only_the_same_offset_again_and_again_stops_a_partition() {
    let partitions = UnreadablePartitions::default();
    fail(&partitions, 1, 10, TRIES - 1);
    assert_eq!(partitions.stopped_at(1, 10), None);
    fail(&partitions, 1, 11, TRIES - 1);
    fail(&partitions, 1, 10, 1);
    assert_eq!(
        partitions.stopped_at(1, 10),
        None,
        "it had come further in between"
    );
    fail(&partitions, 1, 10, TRIES);
    assert!(matches!(
        partitions.stopped_at(1, 10),
        Some(StopReason::Unreadable { next_offset: 10, .. })
    ));
}

#[test]
fn other_offsets_and_other_partitions_go_on() {
    let partitions = UnreadablePartitions::default();
    fail(&partitions, 1, 10, TRIES);
    assert_eq!(
        partitions.stopped_at(1, 9),
        None,
        "there is something to fold before it"
    );
    assert_eq!(partitions.stopped_at(2, 10), None);
}
