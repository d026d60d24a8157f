use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wakelog_model::SessionId;
use wakelog_store::{BatchWrites, Error, Flush, Flushed, PartRow, Refusal, SegmentKind, Staged, Store};

use crate::support::Database;
use crate::support::archive::{
    archived_ranges, entries, hot_entries, lost_entries, object, segment_key, stage, stage_and_flush,
};
use crate::support::rows::{Owner, TOPIC, part, session};

on_both_pools!(
    put_before_prune_of_two_flushes_of_overlapping_ranges_one_wins,
    archived_is_complete_at_every_moment_of_rival_flushes,
    a_batch_and_a_flush_of_one_session_do_not_deadlock,
    put_before_prune_a_flush_and_a_condemnation_never_both_win,
    the_kind_is_that_of_the_batch_that_the_flush_waited_for,
    a_flush_that_waited_for_the_erasure_of_its_session_is_refused,
);

/// Tries again while somebody else holds a row for longer than these tests wait for one.
async fn flush_patiently(store: &Store, flush: &Flush) -> Flushed {
    for _ in 0..100 {
        match store.flush(flush).await {
            Err(Error::LockTimedOut { .. }) => {}
            flushed => return flushed.unwrap(),
        }
    }
    panic!("a row stays locked");
}

async fn put_before_prune_of_two_flushes_of_overlapping_ranges_one_wins(database: Database) {
    let store = database.store().await;
    let rival = database.connect().await;
    let mut owner = Owner::claim(&store).await;
    for round in 1..=20 {
        let session = session(round);
        owner.write(entries(session, 1, 9, 9)).await;
        let flush = async |store: &Store, min, max| {
            let object = object(session, min, max);
            let staging = stage(store, session, &object.key).await;
            let flush = Flush {
                session,
                staging,
                object,
            };
            flush_patiently(store, &flush).await
        };
        let (one, other) = tokio::join!(flush(&store, 1, 5), flush(&rival, 4, 8));
        let done = Flushed::Done {
            kind: SegmentKind::Superseded,
            remarked: 0,
        };
        let refused = |expected, found| Flushed::Refused(Refusal::RowsMoved { expected, found });
        assert!(
            (one, other) == (done, refused(5, 3)) || (one, other) == (refused(5, 3), done),
            "{one:?}, {other:?}"
        );
        assert_eq!(archived_ranges(&store, session).await.len(), 1);
        assert!(lost_entries(&mut database.raw().await, session).await.is_empty());
    }
}

/// What an archiver does: takes a run of the hot tail, flushes some of it, whatever others did meanwhile.
async fn flush_runs(store: &Store, session: SessionId, last: u64, step: u64) {
    loop {
        let runs = store.hot_runs(session, 1, last, 1).await.unwrap();
        let Some((min, max)) = runs.first().copied() else {
            return;
        };
        let object = object(session, min, max.min(min + step));
        let Staged::Ready(staging) = store.stage_object(session, &object.key).await.unwrap() else {
            panic!("{} can't be staged", object.key);
        };
        let flush = Flush {
            session,
            staging,
            object,
        };
        flush_patiently(store, &flush).await;
    }
}

async fn archived_is_complete_at_every_moment_of_rival_flushes(database: Database) {
    let store = database.store().await;
    let rival = database.connect().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(entries(session(1), 1, 120, 120)).await;
    let over = Arc::new(AtomicBool::new(false));
    let mut connection = database.raw().await;
    let watching = tokio::spawn({
        let over = Arc::clone(&over);
        async move {
            let mut looks = 0;
            while !over.load(Ordering::Relaxed) {
                let lost = lost_entries(&mut connection, session(1)).await;
                assert!(lost.is_empty(), "{lost:?}");
                looks += 1;
            }
            looks
        }
    });
    tokio::join!(
        flush_runs(&store, session(1), 119, 2),
        flush_runs(&rival, session(1), 119, 3)
    );
    over.store(true, Ordering::Relaxed);
    assert!(watching.await.unwrap() > 0);
    assert_eq!(hot_entries(&store, session(1)).await, [120]);
    // No entry was pruned twice: the ranges touch and do not overlap.
    let mut next = 1;
    for (min, max) in archived_ranges(&store, session(1)).await {
        assert_eq!(min, next);
        next = max + 1;
    }
    assert_eq!(next, 120);
}

/// A flush that was decided on before a batch and waits for it; both of them are told what the other one did.
async fn flush_behind_a_batch(database: &Database, min: u64, max: u64, writes: BatchWrites) -> Flushed {
    let persister = database.store().await;
    let mut owner = Owner::claim(&persister).await;
    owner.write(entries(session(1), 1, 6, 2)).await;
    let store = database.patient_store().await;
    let object = object(session(1), min, max);
    let flush = Flush {
        session: session(1),
        staging: stage(&store, session(1), &object.key).await,
        object,
    };
    let mut batch = persister
        .begin_batch(TOPIC, 0, owner.epoch, owner.next_offset)
        .await
        .unwrap();
    batch.write(&writes).await.unwrap();
    let flushing = tokio::spawn(async move { store.flush(&flush).await.unwrap() });
    database.wait_until_somebody_waits().await;
    batch.commit(owner.next_offset + 1, 7).await.unwrap();
    flushing.await.unwrap()
}

async fn the_kind_is_that_of_the_batch_that_the_flush_waited_for(database: Database) {
    let checkpoint = entries(session(1), 7, 7, 7);
    let flushed = flush_behind_a_batch(&database, 3, 5, checkpoint).await;
    let superseded = Flushed::Done {
        kind: SegmentKind::Superseded,
        remarked: 0,
    };
    assert_eq!(flushed, superseded);
}

async fn a_flush_that_waited_for_the_erasure_of_its_session_is_refused(database: Database) {
    let erasure = BatchWrites {
        erased: vec![session(1)],
        ..BatchWrites::default()
    };
    let flushed = flush_behind_a_batch(&database, 3, 5, erasure).await;
    assert_eq!(flushed, Flushed::Refused(Refusal::Erased));
}

const ROUNDS: u64 = 60;

/// Each batch writes two sessions, completes an entry of each, supersedes what was before it, and replaces an
/// unfinished entry.
fn round(number: u64) -> BatchWrites {
    let mut writes = BatchWrites::default();
    for session in [session(1), session(2)] {
        let entry = entries(session, number, number, number);
        writes.sessions.extend(entry.sessions);
        writes.lifetimes.extend(entry.lifetimes);
        writes.parts.extend(entry.parts);
        writes.discarded_entries.push((session, number));
        writes.parts.push(PartRow {
            last: false,
            ..part(session, number + 1, 0, b"unfinished")
        });
    }
    writes
}

async fn a_batch_and_a_flush_of_one_session_do_not_deadlock(database: Database) {
    let store = database.store().await;
    let archiver = database.connect().await;
    let mut owner = Owner::claim(&store).await;
    owner.write(round(1)).await;
    let over = AtomicBool::new(false);
    let persisting = async {
        for number in 2..=ROUNDS {
            // Nothing of a batch that ran into the bound is stored: it is written again.
            while let Err(error) = owner.try_write(&round(number)).await {
                assert!(matches!(error, Error::LockTimedOut { .. }), "{error}");
            }
        }
        over.store(true, Ordering::Relaxed);
    };
    let archiving = async |of: [SessionId; 2]| {
        let mut flushed = 0;
        while !over.load(Ordering::Relaxed) {
            for tail in archiver.hot_tails(&of).await.unwrap() {
                let Some(last) = tail.last_checkpoint_seq.checked_sub(1) else {
                    continue;
                };
                let runs = archiver.hot_runs(tail.session, 1, last, 1).await.unwrap();
                let Some((min, max)) = runs.first().copied() else {
                    continue;
                };
                let object = object(tail.session, min, max);
                let flush = Flush {
                    session: tail.session,
                    staging: stage(&archiver, tail.session, &object.key).await,
                    object,
                };
                match flush_patiently(&archiver, &flush).await {
                    Flushed::Done { .. } => flushed += 1,
                    refused => panic!("{refused:?}"),
                }
            }
        }
        flushed
    };
    let ((), flushed) = tokio::join!(persisting, archiving([session(2), session(1)]));
    assert!(flushed > 0);
    for session in [session(1), session(2)] {
        assert!(lost_entries(&mut database.raw().await, session).await.is_empty());
    }
    let progress = store.progress(TOPIC, 0).await.unwrap().unwrap();
    assert_eq!(progress.next_offset as u64, ROUNDS);
}

async fn put_before_prune_a_flush_and_a_condemnation_never_both_win(database: Database) {
    let store = database.store().await;
    let collector = database.connect().await;
    let mut owner = Owner::claim(&store).await;
    for number in 1..=40 {
        let session = session(number);
        owner.write(entries(session, 1, 5, 5)).await;
        let object = object(session, 1, 4);
        let flush = Flush {
            session,
            staging: stage(&store, session, &object.key).await,
            object,
        };
        let flushing = flush_patiently(&store, &flush);
        let condemning = collector.condemn_object(session, &flush.object.key, Duration::ZERO);
        let (flushed, condemned) = match number % 2 {
            0 => tokio::join!(flushing, condemning),
            _ => {
                let (condemned, flushed) = tokio::join!(condemning, flushing);
                (flushed, condemned)
            }
        };
        let is_condemned = condemned.unwrap();
        let is_recorded = store.segment(session, &flush.object.key).await.unwrap().is_some();
        assert_ne!(is_condemned, is_recorded);
        let expected = match is_condemned {
            true => Flushed::Refused(Refusal::NotStaged),
            false => Flushed::Done {
                kind: SegmentKind::Superseded,
                remarked: 0,
            },
        };
        assert_eq!(flushed, expected);
        assert!(lost_entries(&mut database.raw().await, session).await.is_empty());
        // Deleted and forgotten, the same object may be put again, and only then.
        let key = segment_key(session, 1, 4);
        if is_condemned {
            assert_eq!(
                store.stage_object(session, &key).await.unwrap(),
                Staged::Condemned
            );
            collector.forget_condemned(&key).await.unwrap();
            let again = stage_and_flush(&store, session, flush.object).await;
            assert!(matches!(again, Flushed::Done { .. }), "{again:?}");
        }
    }
}
