//! A topic that keeps its records for a short time, and sessions that never end: what the topic drops is in the archive by then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wakelog_proto::v1::AckLevel;

use crate::archive::{SEGMENTS, entry, until};
use crate::holdings::{Holdings, segments_verify};
use crate::support::load::Loaded;
use crate::support::native::fleet::PARTITIONS;
use crate::support::native::{Engines, Kind, NativeStack};
use crate::support::session::open_on;

/// How long the topic keeps its records. Half of it is left to the archiver, which looks every ten seconds.
const RETENTION: Duration = Duration::from_secs(60);

/// How long the broker may take to drop what is older than that.
const UNTIL_DROPPED: Duration = Duration::from_secs(150);

/// The highest offset up to which the archive says that it covers a partition.
fn covered(stack: &NativeStack, partition: i32) -> Option<i64> {
    let offset_of = |key: String| key.rsplit('-').next()?.parse().ok();
    // `covered/INCARNATION-PARTITION-OFFSET`
    let of_partition = |key: &String| {
        let parts: Vec<&str> = key.split('-').collect();
        parts.len() == 3 && parts[1].parse() == Ok(partition)
    };
    let keys = stack.objects("covered/").into_iter().filter(of_partition);
    keys.filter_map(offset_of).max()
}

fn states(stack: &NativeStack, session: &Loaded) -> Vec<String> {
    let below = format!("sessions/{}/state-", session.lifetime.session_id);
    stack.objects(&below)
}

/// Invariant archived-is-complete: by the time that the broker drops records, states and segments of all their sessions are in
/// the archive and cover them. Sessions need not end for that, and nothing is pruned by it.
#[tokio::test(flavor = "multi_thread")]
async fn archived_is_complete_before_the_topic_drops_its_records() {
    let broker = [
        "log.retention.check.interval.ms=1000",
        "log.initial.task.delay.ms=1000",
    ];
    let engines = Arc::new(Engines::prepare(&broker, &[]));
    engines.start().await;
    let mut stack = NativeStack::prepare_on(engines.clone()).await;
    let milliseconds = RETENTION.as_millis().to_string();
    // Only what is not written to any more can be dropped.
    let settings = [("retention.ms", milliseconds.as_str()), ("segment.ms", "5000")];
    let (kafka, topic) = (&engines.kafka, stack.topic().to_owned());
    kafka.create_topic_with(&topic, PARTITIONS, &settings).await;
    stack.up().await;
    let connection = stack.connect().await;

    // One is written to all the time, one is left alone; both share a partition.
    let busy = open_on(&connection, "busy", 0).await;
    let mut busy = Loaded::attach(&connection, &busy, AckLevel::Store).await;
    let idle = open_on(&connection, "idle", 0).await;
    let mut idle = Loaded::attach(&connection, &idle, AckLevel::Store).await;
    for number in 1..=30 {
        for session in [&mut busy, &mut idle] {
            session.send(entry(number, 900, number == 1)).await;
        }
    }
    busy.drain().await;
    idle.drain().await;
    assert_eq!((states(&stack, &busy).len(), states(&stack, &idle).len()), (0, 0));

    let deadline = Instant::now() + UNTIL_DROPPED;
    let first_covered = covered(&stack, 0);
    let dropped = loop {
        let number = busy.sent.entries.len() as u64 + 1;
        busy.send(entry(number, 900, false)).await;
        busy.drain().await;
        // Before the archive: what is covered only rises.
        let (low, _) = kafka.watermarks(&topic, 0);
        let covered_now = covered(&stack, 0).unwrap_or(0);
        assert!(
            covered_now >= low,
            "records below {low} are dropped, and the archive covers those below {covered_now}"
        );
        if low > 60 {
            break low;
        }
        assert!(Instant::now() < deadline, "the topic starts at {low}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    assert!(covered(&stack, 0) > first_covered, "{first_covered:?}");

    for session in [&busy, &idle] {
        let found = states(&stack, session).len();
        assert!((1..=3).contains(&found), "{found} states");
        let written = session.sent.entries.len() as u64;
        let mut holdings = Holdings::of(&stack, session).await;
        assert_eq!(holdings.hot_entries().await, written, "something was pruned");
        // Those below the first 30 entries of both, at least, were dropped by the topic.
        assert!(holdings.copied_entries(written).await >= 30);
        holdings.are_whole(&stack, session, "in the end").await;
        session.check(&connection, "in the end").await;
    }
    let snapshots = async || {
        let mut snapshots = 0.0;
        for number in 0..2 {
            let name = "wakelog_archiver_snapshots_total";
            snapshots += stack.metric(Kind::Archive, number, name).await;
        }
        snapshots
    };
    let taken = snapshots().await;
    assert!(taken >= 2.0, "{taken} snapshots");
    // Coverage goes on rising with what is written.
    until("more is covered", async || covered(&stack, 0) > Some(dropped)).await;
    eprintln!(
        "the topic starts at {dropped}; covered up to {:?}, {taken} snapshots",
        covered(&stack, 0)
    );
    for number in 0..2 {
        let page = crate::support::process::get(&stack.http(Kind::Archive, number), "/metrics").await;
        let page = page.expect("metrics");
        let mut kinds = page.lines().filter(|line| line.starts_with(SEGMENTS));
        assert!(kinds.all(|line| line.contains("retention")), "{page}");
    }
    assert!(stack.stop_all().success(), "{}", stack.log());
    let report = segments_verify(&stack, &[]);
    assert_eq!(
        report["findings"].as_array().expect("findings").len(),
        0,
        "{report}"
    );
}
