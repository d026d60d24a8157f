use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::support::Database;
use crate::support::archive::{archived_ranges, entries, object, segment_key, stage, stage_and_flush};
use crate::support::rows::{Owner, session};
use wakelog_store::{SegmentRow, SnapshotCause};

on_both_pools!(
    segments_that_overlap_a_range_come_in_the_order_of_their_entries,
    pages_of_segments_hold_each_once_in_the_order_of_their_entries,
    the_manifest_knows_its_objects_of_every_session,
    pages_of_all_segments_go_over_every_session,
    the_end_of_a_session_is_found_behind_a_long_history,
);

fn ranges(segments: &[SegmentRow]) -> Vec<(u64, u64)> {
    segments
        .iter()
        .map(|segment| (segment.min_entry_seq, segment.max_entry_seq))
        .collect()
}

async fn segments_that_overlap_a_range_come_in_the_order_of_their_entries(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 20, 20)).await;
    owner.write(entries(session(2), 1, 20, 20)).await;
    for (min, max) in [(1, 12), (4, 9)] {
        let copy = object(session(1), min, max);
        let staging = stage(&store, session(1), &copy.key).await;
        store
            .record_snapshot_segment(session(1), staging, &copy, SnapshotCause::Retention)
            .await
            .unwrap();
    }
    for (min, max) in [(10, 10), (1, 3), (4, 5), (6, 9)] {
        stage_and_flush(&store, session(1), object(session(1), min, max)).await;
    }
    stage_and_flush(&store, session(2), object(session(2), 5, 8)).await;

    let overlapping = async |first, last, limit| {
        ranges(
            &store
                .segments_overlapping(session(1), first, last, limit)
                .await
                .unwrap(),
        )
    };
    let everything = [(1, 3), (1, 12), (4, 5), (4, 9), (6, 9), (10, 10)];
    assert_eq!(overlapping(0, u64::MAX, 100).await, everything);
    assert_eq!(overlapping(5, 6, 100).await, everything[1..5]);
    assert_eq!(overlapping(5, 6, 2).await, everything[1..3]);
    assert_eq!(overlapping(10, 10, 100).await, [(1, 12), (10, 10)]);
    assert_eq!(overlapping(12, 12, 100).await, [(1, 12)]);
    assert!(overlapping(13, 20, 100).await.is_empty());
    assert!(overlapping(9, 5, 100).await.len() <= 6);
    assert!(
        store
            .segments_overlapping(session(3), 1, 9, 9)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn pages_of_segments_hold_each_once_in_the_order_of_their_entries(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 20, 20)).await;
    for min in [9, 1, 10, 2, 17] {
        stage_and_flush(&store, session(1), object(session(1), min, min)).await;
    }
    let expected = [(1, 1), (2, 2), (9, 9), (10, 10), (17, 17)];
    for limit in [1, 2, 5, 6] {
        let (mut met, mut after): (Vec<_>, Option<String>) = (Vec::new(), None);
        loop {
            let page = store
                .segments_page(session(1), after.as_deref(), limit)
                .await
                .unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            met.extend(ranges(&page));
        }
        assert_eq!(met, expected, "{limit}");
    }
}

async fn the_manifest_knows_its_objects_of_every_session(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    let mut known = HashSet::new();
    for number in [1, 2] {
        owner.write(entries(session(number), 1, 5, 5)).await;
        let object = object(session(number), 1, 4);
        known.insert(object.key.clone());
        stage_and_flush(&store, session(number), object).await;
    }
    let staged = segment_key(session(1), 2, 3);
    stage(&store, session(1), &staged).await;
    let mut asked: Vec<String> = (0..2_500).map(|number| format!("unknown/{number}")).collect();
    asked.push(staged);
    asked.extend(known.iter().cloned());
    assert_eq!(store.known_objects(&asked).await.unwrap(), known);
    assert!(store.known_objects(&[]).await.unwrap().is_empty());
}

async fn the_end_of_a_session_is_found_behind_a_long_history(database: Database) {
    database.store().await.close().await;
    let mut connection = database.raw().await;
    // Then the counters start anew, once they have what these statements did.
    for statement in [
        "ALTER TABLE agent_session_archive_segments SET (autovacuum_enabled = false)",
        "INSERT INTO agent_session_archive_segments
             (session_id, object_key, min_entry_seq, max_entry_seq, kind, entries, plain_bytes, object_bytes,
              object_digest)
         SELECT '00000000-0000-0000-0000-000000000001', lpad(number::text, 20, '0'), number * 10 - 9, number * 10,
                'superseded', 10, 10, 10, decode(repeat('00', 32), 'hex')
         FROM generate_series(1, 10000) AS number",
        "ANALYZE agent_session_archive_segments",
        "SELECT pg_stat_force_next_flush()",
        "SELECT pg_stat_reset()",
    ] {
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    }
    let store = database.connect().await;
    let segments = store
        .segments_overlapping(session(1), 99_985, 100_000, 100)
        .await
        .unwrap();
    assert_eq!(ranges(&segments), [(99_981, 99_990), (99_991, 100_000)]);
    assert_eq!(archived_ranges(&store, session(1)).await.len(), 1_000);
    // What the server read of the index for it: counted at the latest when the connection that read is gone.
    store.close().await;
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        let blocks = database
            .number(
                "SELECT CASE WHEN idx_scan > 0 THEN idx_blks_read + idx_blks_hit ELSE -1 END
                 FROM pg_stat_user_indexes JOIN pg_statio_user_indexes USING (indexrelid)
                 WHERE pg_stat_user_indexes.indexrelname = 'agent_session_archive_segments_by_range'",
            )
            .await;
        if blocks >= 0 {
            assert!(blocks <= 15, "{blocks} blocks of the index");
            return;
        }
        assert!(Instant::now() < give_up, "the index is not used");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn pages_of_all_segments_go_over_every_session(database: Database) {
    let store = database.store().await;
    let mut owner = Owner::claim(&store).await;
    for number in [2, 1, 3] {
        owner.write(entries(session(number), 1, 20, 20)).await;
        for min in [9, 1, 10] {
            stage_and_flush(&store, session(number), object(session(number), min, min)).await;
        }
    }
    let expected: Vec<_> = [1, 2, 3]
        .into_iter()
        .flat_map(|number| [1, 9, 10].map(|min| (session(number), min)))
        .collect();
    for limit in [1, 2, 5, 10] {
        let mut met: Vec<SegmentRow> = Vec::new();
        loop {
            let after = met.last().map(|row| (row.session, row.key.as_str()));
            let page = store.all_segments_page(after, limit).await.unwrap();
            if page.is_empty() {
                break;
            }
            assert!(page.len() <= limit as usize);
            met.extend(page);
        }
        let met: Vec<_> = met.iter().map(|row| (row.session, row.min_entry_seq)).collect();
        assert_eq!(met, expected, "{limit}");
    }
}
