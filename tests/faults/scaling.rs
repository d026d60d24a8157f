//! Members of the groups come and go under load: persisters and archivers share the partitions among those that are there.

use std::time::{Duration, Instant};

use wakelog_client::Connection;
use wakelog_proto::v1::AckLevel;

use crate::ends_well;
use crate::engine_outages::RECOVERY;
use crate::support::PATIENCE;
use crate::support::load::{Load, Loaded};
use crate::support::native::{Kind, NativeStack};
use crate::support::session::open_on;

/// Partitions of this topic: a fourth member gets nothing.
const PARTITIONS: i32 = 3;

/// The kinds that share the partitions.
const SHARING: [Kind; 2] = [Kind::Persist, Kind::Archive];

/// Invariants exactly-once-fold, acked-is-durable, put-before-prune: one member, three, a fourth that gets nothing, one killed,
/// one stopped politely, one frozen and woken. Each time the others take over, nobody holds a partition twice, and the load
/// goes on.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_while_members_come_and_go() {
    let mut stack = NativeStack::prepare().await;
    stack.set("WAKELOG_PARTITIONS", &PARTITIONS.to_string());
    // The archivers have something to do all the time.
    stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", "50000");
    stack.up().await;
    for kind in SHARING {
        assert!(stack.stop(kind, 1).success());
    }
    let load = load_on_every_partition(&stack.connect().await).await;
    goes_on(&stack, &load, "one member", &[3]).await;

    for kind in SHARING {
        stack.add(kind);
        stack.start(kind, 1).await;
        stack.start(kind, 2).await;
    }
    goes_on(&stack, &load, "three members", &[1, 1, 1]).await;

    for kind in SHARING {
        let fourth = stack.add(kind);
        stack.start(kind, fourth).await;
    }
    goes_on(&stack, &load, "a fourth member gets nothing", &[0, 1, 1, 1]).await;

    for kind in SHARING {
        let victim = one_with_work(&stack, kind).await;
        stack.kill(kind, victim);
    }
    goes_on(&stack, &load, "one was killed", &[1, 1, 1]).await;

    start_what_is_missing(&mut stack).await;
    goes_on(&stack, &load, "it is back", &[0, 1, 1, 1]).await;

    for kind in SHARING {
        let victim = one_with_work(&stack, kind).await;
        assert!(stack.stop(kind, victim).success());
    }
    goes_on(&stack, &load, "one was stopped politely", &[1, 1, 1]).await;

    start_what_is_missing(&mut stack).await;
    let mut frozen = Vec::new();
    for kind in SHARING {
        let victim = one_with_work(&stack, kind).await;
        stack.signal(kind, victim, "STOP");
        frozen.push((kind, victim));
    }
    shares_are(&stack, "one is frozen", &[1, 1, 1], &frozen).await;
    load.advance_within(50, "one is frozen", RECOVERY).await;
    for (kind, number) in frozen {
        stack.signal(kind, number, "CONT");
    }
    goes_on(&stack, &load, "it was woken", &[0, 1, 1, 1]).await;
    ends_well(&mut stack, load, "members came and went").await;
}

async fn load_on_every_partition(connection: &Connection) -> Load {
    let mut sessions = Vec::new();
    for partition in 0..PARTITIONS {
        for (name, level) in [("log", AckLevel::Log), ("store", AckLevel::Store)] {
            let session = open_on(connection, name, partition).await;
            sessions.push(Loaded::attach(connection, &session, level).await);
        }
    }
    Load::start_in(sessions, 1, Duration::from_millis(10))
}

/// The members of both groups hold so many partitions each, in whichever order, and every writer gets on.
async fn goes_on(stack: &NativeStack, load: &Load, context: &str, shares: &[usize]) {
    shares_are(stack, context, shares, &[]).await;
    load.advance_within(50, context, RECOVERY).await;
}

async fn shares_are(stack: &NativeStack, context: &str, wanted: &[usize], frozen: &[(Kind, usize)]) {
    for kind in SHARING {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut shares = Vec::new();
            for number in 0..stack.count(kind) {
                if stack.is_running(kind, number) && !frozen.contains(&(kind, number)) {
                    shares.push(stack.share(kind, number).await);
                }
            }
            shares.sort_unstable();
            if shares == wanted {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "{context}: {kind:?} hold {shares:?} partitions and not {wanted:?}\n{}",
                stack.log()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn one_with_work(stack: &NativeStack, kind: Kind) -> usize {
    for number in 0..stack.count(kind) {
        if stack.is_running(kind, number) && stack.share(kind, number).await > 0 {
            return number;
        }
    }
    panic!("no {kind:?} holds a partition");
}

async fn start_what_is_missing(stack: &mut NativeStack) {
    for kind in SHARING {
        for number in 0..stack.count(kind) {
            if !stack.is_running(kind, number) {
                stack.start(kind, number).await;
            }
        }
    }
}
