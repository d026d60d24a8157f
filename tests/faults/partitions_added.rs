//! Partitions are added while everything runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminOptions, NewPartitions};
use sqlx::{Connection as _, PgConnection};
use wakelog_client::Connection;
use wakelog_proto::v1::{AckLevel, OpenSessionRequest, OpenSessionResponse};

use crate::engine_outages::RECOVERY;
use crate::support::load::{Load, Loaded};
use crate::support::native::NativeStack;
use crate::support::native::fleet::PARTITIONS;
use crate::support::{PATIENCE, within};
use crate::{bodies_are_right, ends_well};

/// How many there are then.
const MORE: i32 = 7;

/// Invariants exactly-once-fold, acked-is-durable, resume-is-current: sessions stay where they are and go on, new ones come to the
/// new partitions, and no call fails or waits for long because of it.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_when_partitions_are_added() {
    let mut stack = NativeStack::prepare().await;
    stack.up().await;
    let connection = stack.connect().await;
    let load = Load::start(&connection, "before", 1, 8, Duration::from_millis(10)).await;
    load.advance(50, "before").await;
    let before = pins(&stack).await;

    let more = NewPartitions::new(stack.topic(), MORE as usize);
    let outcome = stack
        .engines()
        .kafka
        .admin()
        .create_partitions(&[more], &AdminOptions::new())
        .await
        .expect("an answer");
    outcome.into_iter().for_each(|outcome| {
        outcome.expect("the partitions are added");
    });
    let new = sessions_on_new_partitions(&stack).await;
    // Now, and by the other reconstructor: its producer has not heard of these partitions.
    bodies_are_right(&stack, &new, "on new partitions").await;
    load.advance_within(50, "partitions were added", RECOVERY).await;

    let after = pins(&stack).await;
    for (session, partition) in &before {
        assert_eq!(after.get(session), Some(partition), "session {session} has moved");
    }
    // Asked for again, with the request of before.
    let again = open(&connection, "before-1-0").await;
    assert_eq!(before.get(&again.session_id), Some(&again.partition));

    ends_well(&mut stack, load, "partitions were added").await;
}

/// Opens sessions until each new partition has one, and writes to those.
async fn sessions_on_new_partitions(stack: &NativeStack) -> Vec<Loaded> {
    // Another reconstructor than the load's first one.
    let connection = stack.connect_turned(1).await;
    let mut wanted: BTreeSet<i32> = (PARTITIONS..MORE).collect();
    let mut sessions = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    for number in 0.. {
        let opened = open(&connection, &format!("after-{number}")).await;
        if wanted.remove(&opened.partition) {
            let mut session = Loaded::attach(&connection, &opened.session_id, AckLevel::Store).await;
            session.send_seeded(number, 30).await;
            session.drain().await;
            sessions.push(session);
        }
        if wanted.is_empty() {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "no session comes to partitions {wanted:?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    sessions
}

async fn open(connection: &Connection, request_id: &str) -> OpenSessionResponse {
    let request = OpenSessionRequest {
        request_id: request_id.to_owned(),
        ..Default::default()
    };
    let opened = within("opening a session", connection.sessions().open_session(request)).await;
    opened.expect("the session opens").into_inner()
}

/// The partition of every session.
async fn pins(stack: &NativeStack) -> BTreeMap<String, i32> {
    let mut database = PgConnection::connect(&stack.database_url())
        .await
        .expect("a connection");
    let rows: Vec<(String, i32)> = sqlx::query_as("SELECT session_id::text, partition FROM session_pins")
        .fetch_all(&mut database)
        .await
        .expect("pins");
    rows.into_iter().collect()
}
