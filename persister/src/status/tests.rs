use super::{Membership, PartitionState, StatusHandle, StopReason};

#[test]
fn a_stopped_or_waiting_partition_is_not_healthy_and_a_starting_one_is() {
    let status = StatusHandle::default();
    assert!(!status.is_healthy(), "not in the group");
    status.set_membership(Membership::In);
    assert!(status.is_healthy());
    let seen_elsewhere = status.clone();
    status.set_partition(
        1,
        PartitionState::Starting {
            epoch: 1,
            next_offset: 0,
        },
    );
    assert!(seen_elsewhere.is_healthy());
    status.set_partition(
        1,
        PartitionState::Degraded {
            epoch: 1,
            next_offset: 0,
            reason: "away".to_owned(),
        },
    );
    assert!(!seen_elsewhere.is_healthy());
    status.set_partition(
        1,
        PartitionState::Running {
            epoch: 1,
            next_offset: 5,
        },
    );
    assert!(seen_elsewhere.is_healthy());
    status.set_partition(
        2,
        PartitionState::Stopped {
            reason: StopReason::BeyondEnd {
                next_offset: 5,
                high: 1,
            },
        },
    );
    assert!(!seen_elsewhere.is_healthy());
    assert_eq!(seen_elsewhere.partitions().len(), 2);
    status.remove_partition(2);
    assert!(seen_elsewhere.is_healthy());
    status.set_membership(Membership::Rejoining {
        reason: "fenced".to_owned(),
    });
    assert!(!seen_elsewhere.is_healthy());
}
