use wakelog_contract::reason_of;
use wakelog_model::SessionId;
use wakelog_proto::v1::RefusalReason;

use super::*;
use crate::ack::Level;
use crate::admission::EntryRequest;
use crate::facts::tests::{facts, standing};
use crate::lane::PartOrder;

const IDLE: Duration = Duration::from_millis(50);

fn lanes(max: usize) -> Lanes {
    let limits = LaneLimits {
        max_unacked_bytes: 1_000,
        max_fence_age: Duration::from_secs(30),
        bind_message_timeout: Duration::from_secs(5),
    };
    let mut lanes = Lanes::new(max, IDLE, limits, Arc::default());
    lanes.watched_after_use = IDLE;
    lanes
}

fn identity(number: u8) -> Identity {
    Identity {
        session: SessionId::for_request("ada", "r"),
        lifetime: LifetimeId([number; 16]),
        generation: 3,
        partition: 0,
    }
}

fn publish_one(lane: &Lane) {
    lane.observe(facts(Some(standing(0)), 0));
    let request = EntryRequest {
        generation: 3,
        nonce: wakelog_model::WriterNonce([1; 16]),
        seq: 1,
    };
    let order = PartOrder {
        owner: 1,
        request,
        part: 0,
        last: true,
        bytes: 1,
        asked: Level::Log,
        epoch: 0,
    };
    lane.change(|state| {
        state.begin_part(&order).unwrap();
        state.part_published(&order);
    });
}

#[tokio::test]
async fn only_idle_lanes_are_evicted_after_a_while() {
    let lanes = lanes(10);
    let held = lanes.hold(identity(1)).unwrap();
    drop(lanes.hold(identity(2)).unwrap());
    let unacked = lanes.hold(identity(3)).unwrap();
    publish_one(&unacked);
    drop(unacked);
    tokio::time::sleep(IDLE * 2).await;
    lanes.evict_idle();
    let mut left: Vec<u8> = lanes.slots().keys().map(|lifetime| lifetime.0[0]).collect();
    left.sort_unstable();
    assert_eq!(left, [1, 3], "held and unacknowledged ones stay");
    assert_eq!(lanes.unacked_entries(), 1);
    drop(held);
    lanes.evict_idle();
    assert_eq!(lanes.slots().len(), 1);
}

#[tokio::test]
async fn lanes_used_lately_are_not_evicted() {
    let mut lanes = lanes(10);
    lanes.idle = Duration::from_secs(600);
    drop(lanes.hold(identity(1)).unwrap());
    lanes.evict_idle();
    assert_eq!(lanes.slots().len(), 1);
}

#[tokio::test]
async fn a_full_map_evicts_the_longest_unused_or_pushes_back() {
    let lanes = lanes(2);
    drop(lanes.hold(identity(1)).unwrap());
    tokio::time::sleep(Duration::from_millis(2)).await;
    drop(lanes.hold(identity(2)).unwrap());
    let three = lanes.hold(identity(3)).unwrap();
    assert!(!lanes.slots().contains_key(&LifetimeId([1; 16])));
    let two = lanes.hold(identity(2)).unwrap();
    let refused = lanes.hold(identity(4)).unwrap_err();
    assert_eq!(reason_of(&refused), Some(RefusalReason::BackPressure));
    drop((two, three));
    assert!(lanes.hold(identity(4)).is_ok());
}

#[tokio::test]
async fn fences_are_read_for_lanes_in_use_or_used_lately() {
    let lanes = lanes(10);
    let held = lanes.hold(identity(1)).unwrap();
    drop(lanes.hold(identity(2)).unwrap());
    assert_eq!(lanes.live().len(), 2);
    tokio::time::sleep(IDLE * 2).await;
    let live = lanes.live();
    assert_eq!(live.len(), 1);
    assert_eq!(live[0].identity, held.identity);
}
