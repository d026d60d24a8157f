//! How the rate of the fold grows with partitions and persisters: the same backlog in 1 to 8 partitions of one persister, and in 8
//! partitions of 1 to 4 persisters; beside raw `UNNEST` of the same rows over one connection for each of 8 partitions.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::persist::{checkpoint, progress, rate_of_backlog};
use super::{Run, per_second};
use crate::Error;
use crate::baseline::producer::RawProducer;
use crate::baseline::unnest;
use crate::pipeline::{HeldSession, Pipeline};
use crate::records::{dealt_out, records_of};
use crate::report::{Figure, Found};
use crate::service::Kind;
use crate::stage::PARTITIONS;
use crate::text::Transcript;

/// Partitions that have a backlog, persisters, and what the case is called.
const CASES: [(i32, usize, &str); 6] = [
    (1, 1, "1 partition, 1 persister"),
    (2, 1, "2 partitions, 1 persister"),
    (4, 1, "4 partitions, 1 persister"),
    (8, 1, "8 partitions, 1 persister"),
    (8, 2, "8 partitions, 2 persisters"),
    (8, 4, "8 partitions, 4 persisters"),
];

/// Sessions of each partition, for each case.
const SESSIONS_PER_PARTITION: usize = 4;

/// Entries of a backlog.
const ENTRIES: usize = 64_000;

/// Records of the backlog on their way to the log.
const IN_FLIGHT: usize = 4_096;

/// How often something is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// How long a wait may take.
const WAIT: Duration = Duration::from_secs(120);

/// The sessions of one case, and how far they are.
struct Case {
    name: &'static str,
    partitions: i32,
    persisters: usize,
    sessions: Vec<HeldSession>,
    next_seq: u64,
    rates: Vec<f64>,
}

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let held = pipeline
        .hold_sessions(SESSIONS_PER_PARTITION * CASES.len())
        .await?;
    let mut cases: Vec<Case> = CASES
        .iter()
        .enumerate()
        .map(|(number, (partitions, persisters, name))| Case {
            name,
            partitions: *partitions,
            persisters: *persisters,
            sessions: sessions_of(&held, number, *partitions),
            next_seq: 1,
            rates: Vec::new(),
        })
        .collect();
    pipeline.stop_service(Kind::Persister).await?;
    let pool = pipeline.stage.pool().await?;
    unnest::create_table(&pool).await?;
    let producer = RawProducer::new(&pipeline.stage.stream)?;
    let count = run.options.scaled(ENTRIES, 32 * 32) / 32 * 32;
    let mut transcript = Transcript::new(run.options.seed);
    let mut baseline = Vec::new();
    let mut raw_seq = 1;
    for round in run.rounds() {
        let entries = transcript.entries(count);
        let widest = cases.iter().rposition(|case| case.partitions == PARTITIONS);
        let sessions = widest.map_or(&held, |widest| &cases[widest].sessions);
        let parts = dealt_out(sessions, &entries, raw_seq);
        let batches = unnest::batches_by_partition(PARTITIONS as usize, parts)?;
        raw_seq += (count / sessions.len()) as u64;
        checkpoint(&pool).await;
        let raw = unnest::insert(&pool, batches).await?;
        if round.counts() {
            baseline.push(per_second(count, raw));
        }
        for case in &mut cases {
            run.say(case.name);
            let backlog = records_of(&case.sessions, &entries, case.next_seq);
            case.next_seq += (count / case.sessions.len()) as u64;
            pipeline.start_persisters(case.persisters).await?;
            wait_until_shared(pipeline, case.persisters).await?;
            // The backlog comes at once for all of them, and what it costs to publish it is not measured.
            pipeline.freeze_persisters()?;
            let before = progress(&pool).await?;
            let published = producer.publish_all(&backlog, IN_FLIGHT).await;
            checkpoint(&pool).await;
            pipeline.thaw_persisters()?;
            published?;
            let rate = rate_of_backlog(&pool, before, backlog.len()).await?;
            pipeline.stop_persisters().await?;
            if round.counts() {
                case.rates.push(rate);
            }
        }
    }
    let figures = cases.into_iter().map(|case| {
        Figure::beside(
            "scale",
            case.name,
            "entries/s",
            case.rates,
            baseline.clone(),
            None,
        )
    });
    Ok(Found {
        figures: figures.collect(),
        ..Found::default()
    })
}

/// The sessions of case `number`, of the first partitions.
fn sessions_of(held: &[HeldSession], number: usize, partitions: i32) -> Vec<HeldSession> {
    let of_partition = |partition: i32| {
        held.iter()
            .filter(move |session| session.partition == partition)
            .skip(number * SESSIONS_PER_PARTITION)
            .take(SESSIONS_PER_PARTITION)
            .cloned()
    };
    (0..partitions).flat_map(of_partition).collect()
}

/// Waits until each persister holds its share of the partitions.
async fn wait_until_shared(pipeline: &Pipeline<'_>, persisters: usize) -> Result<(), Error> {
    let share = PARTITIONS as usize / persisters;
    let deadline = Instant::now() + WAIT;
    while !pipeline.persisters_hold(share).await? {
        if Instant::now() > deadline {
            return Err(Error::Late {
                what: "every persister's share of the partitions",
                seconds: WAIT.as_secs(),
            });
        }
        sleep(LOOK).await;
    }
    Ok(())
}
