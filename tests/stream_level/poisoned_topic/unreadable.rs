//! What is no record, or on the wrong partition.

use futures::future::join_all;
use prost::Message as _;
use wakelog_proto::v1::session_record::Record;
use wakelog_proto::v1::{AckLevel, LifetimeEnded, RefusalReason, SessionOpened, SessionRecord};

use super::Scene;
use super::topic::{PARTITIONS, bind, entry_part, expect_quarantined, expect_stopped};
use crate::support::bystander::Bystander;
use crate::support::relay::commit;
use crate::support::session::export;

/// Invariant exactly-once-fold, over values and keys that nobody can read.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_of_what_is_no_record() {
    let mut scene = Scene::start().await;
    let partition = scene.subject.partition;
    let session = scene.subject.session.clone();
    let key = Some(session.as_bytes());

    let values: [Option<&[u8]>; 7] = [
        Some(b"\xff\xff\xff\xff"),
        Some(b"{\"json\":true}"),
        // A field of a later build alone, and a known one that is cut off.
        Some(b"\x7a\x02\x08\x01"),
        Some(b"\x22\x7f\x0a"),
        Some(b"\0"),
        Some(b""),
        None,
    ];
    for (number, value) in (1..).zip(values) {
        scene.topic.put(partition, key, value).await;
        scene.quarantined += 1;
        scene.goes_on(number, &format!("value {value:?}")).await;
    }
    expect_quarantined(&scene.stack, "undecodable", 7).await;

    // Good records under keys that are no session.
    let record = Record::EntryPart(entry_part(&scene.subject, scene.subject.last_seq + 1, b"{}\n"));
    let good = SessionRecord { record: Some(record) }.encode_to_vec();
    let (upper, long) = (session.to_uppercase().replace('0', "A"), "k".repeat(20_000));
    let keys: [Option<&[u8]>; 6] = [
        None,
        Some(b""),
        Some(b"no session"),
        Some(upper.as_bytes()),
        Some(b"\xff\xfe\0"),
        Some(long.as_bytes()),
    ];
    for (number, key) in (8..).zip(keys) {
        scene.topic.put(partition, key, Some(&good)).await;
        scene.quarantined += 1;
        scene
            .goes_on(7, &format!("key {:?}", key.map(|key| &key[..key.len().min(40)])))
            .await;
        expect_quarantined(&scene.stack, "undecodable", number).await;
    }
    scene.end().await;
}

/// Invariant exactly-once-fold: what is not on its session's partition is not applied, whatever it says.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_of_records_on_the_wrong_partition() {
    let mut scene = Scene::start().await;
    let elsewhere = (scene.subject.partition + 1) % PARTITIONS;
    let mut other = Bystander::open_on(&scene.connection, "elsewhere", elsewhere).await;
    let subject = scene.subject.clone();
    let next = entry_part(&subject, subject.last_seq + 1, b"{\"elsewhere\":true}\n");
    let opened = SessionOpened {
        owner: "local".to_owned(),
        partition: subject.partition,
        ..Default::default()
    };
    let records = [
        ("its next entry", Record::EntryPart(next)),
        ("its opening", Record::SessionOpened(opened)),
        (
            "its next bind",
            Record::LifetimeBound(bind(&subject, "elsewhere", 2)),
        ),
        (
            "its end",
            Record::LifetimeEnded(LifetimeEnded {
                lifetime_id: subject.lifetime.lifetime_id.clone(),
            }),
        ),
    ];
    for (number, (what, record)) in (1..).zip(records) {
        scene.topic.put_record(elsewhere, &subject.session, record).await;
        scene.quarantined += 1;
        other.goes_on(&scene.connection, what).await;
        scene.goes_on(number, what).await;
        expect_quarantined(&scene.stack, "wrong_partition", number).await;
    }
    // The opening of a session that nobody knows, on a partition that it does not name.
    let unknown = uuid::Uuid::new_v4().to_string();
    let opened = SessionOpened {
        owner: "local".to_owned(),
        partition: subject.partition,
        ..Default::default()
    };
    scene
        .topic
        .put_record(elsewhere, &unknown, Record::SessionOpened(opened))
        .await;
    scene.quarantined += 1;
    other
        .goes_on(&scene.connection, "an unknown session's opening")
        .await;
    expect_quarantined(&scene.stack, "wrong_partition", 5).await;
    scene.end().await;
}

/// A flood of records that nobody can read, all of one key, is one bad writer and no bad deploy: the partition goes on.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_through_a_flood_of_one_key() {
    const FLOOD: u64 = 1500;
    let mut scene = Scene::start().await;
    let (partition, session) = (scene.subject.partition, scene.subject.session.clone());
    for round in 1..=2 {
        let topic = &scene.topic;
        let puts = (0..FLOOD).map(|at| {
            let session = session.as_bytes();
            async move {
                let mut value = b"\xff flood ".to_vec();
                value.extend(at.to_be_bytes().repeat(20));
                topic.put(partition, Some(session), Some(&value)).await;
            }
        });
        join_all(puts).await;
        scene.quarantined += FLOOD;
        scene.goes_on(round * FLOOD, &format!("flood {round}")).await;
    }
    expect_quarantined(&scene.stack, "undecodable", 2 * FLOOD).await;
    scene.end().await;
}

/// Invariant no-silent-gap: records of many sessions that nobody can read are a bad deploy. Their partition stops before the
/// log is drained into quarantine; the other partitions go on.
#[tokio::test(flavor = "multi_thread")]
async fn no_silent_gap_where_many_sessions_cannot_be_read() {
    let mut scene = Scene::start().await;
    let partition = scene.subject.partition;
    let elsewhere = (partition + 1) % PARTITIONS;
    let mut other = Bystander::open_on(&scene.connection, "elsewhere", elsewhere).await;
    let topic = &scene.topic;
    let puts = (0..600_u32).map(|at| async move {
        let key = format!("00000000-0000-4000-8000-{:012}", at % 50);
        topic
            .put(partition, Some(key.as_bytes()), Some(b"\xff of a later build"))
            .await;
    });
    join_all(puts).await;
    expect_stopped(&scene.stack, "undecodable", 1).await;
    other.goes_on(&scene.connection, "a stopped partition").await;
    // Nobody knows what a current body would be, so there is none; the log still takes entries.
    let stale = export(&scene.connection, &scene.subject.session).await;
    let stale = stale.expect_err("a body that may not be current");
    assert_eq!(
        stale.refusal_reason(),
        Some(RefusalReason::DependencyUnavailable),
        "{stale}"
    );
    let mut frame = scene.subject.next_frame();
    frame.ack_level = AckLevel::Log.into();
    let acked = commit(&scene.connection, Some(scene.subject.token()), &frame).await;
    let seq = scene.subject.last_seq + 1;
    assert_eq!(acked.expect("the log has it"), (seq, AckLevel::Log));
    assert!(
        scene.stack.stop().success(),
        "a drained stop ends well\n{}",
        scene.stack.log()
    );
    assert!(
        scene.stack.verify_counting() < 600,
        "the log was not drained into quarantine"
    );
}
