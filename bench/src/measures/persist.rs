//! The persister working off a backlog; beside raw `UNNEST` of the same rows into a table of the same shape.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio::time::sleep;

use super::{Run, per_second};
use crate::Error;
use crate::baseline::producer::RawProducer;
use crate::baseline::unnest;
use crate::pipeline::Pipeline;
use crate::records::{dealt_out, records_of};
use crate::report::{Figure, Found, Goal};
use crate::service::Kind;
use crate::stage::PARTITIONS;
use crate::text::Transcript;

/// Sessions of each partition.
const SESSIONS_PER_PARTITION: usize = 4;

/// Entries of a round.
const ENTRIES: usize = 64_000;

/// Records of the backlog on their way to the log.
const IN_FLIGHT: usize = 4_096;

/// How often the progress is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// How long the persister may take for a backlog.
const WAIT: Duration = Duration::from_secs(120);

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let sessions = pipeline.hold_sessions(SESSIONS_PER_PARTITION).await?;
    pipeline.stop_service(Kind::Persister).await?;
    let pool = pipeline.stage.pool().await?;
    unnest::create_table(&pool).await?;
    let producer = RawProducer::new(&pipeline.stage.stream)?;
    let per_session = run.options.scaled(ENTRIES, sessions.len() * 32) / sessions.len();
    let mut transcript = Transcript::new(run.options.seed);

    let (mut ours, mut baseline, mut batch_rows) = (Vec::new(), Vec::new(), Vec::new());
    let mut next_seq = 1;
    for round in run.rounds() {
        let entries = transcript.entries(per_session * sessions.len());
        let parts = dealt_out(&sessions, &entries, next_seq);
        let batches = unnest::batches_by_partition(PARTITIONS as usize, parts)?;
        checkpoint(&pool).await;
        let raw = unnest::insert(&pool, batches).await?;
        let backlog = records_of(&sessions, &entries, next_seq);
        producer.publish_all(&backlog, IN_FLIGHT).await?;
        checkpoint(&pool).await;
        let worked_off = work_off(pipeline, &pool, backlog.len()).await?;
        next_seq += per_session as u64;
        if round.counts() {
            baseline.push(per_second(entries.len(), raw));
            ours.push(worked_off.per_second);
            batch_rows.push(worked_off.batch_records);
        }
    }
    let stored: i64 = sqlx::query_scalar("SELECT count(*) FROM agent_session_transcript_entries")
        .fetch_one(&pool)
        .await?;
    let expected = (next_seq as usize - 1) * sessions.len();
    if stored as usize != expected {
        return Err(Error::Wrong(format!("{stored} of {expected} entries are stored")));
    }
    let goal = Some(Goal::RatioAtLeast(0.6));
    Ok(Found {
        figures: vec![
            Figure::beside("persist", "backlog", "entries/s", ours, baseline, goal),
            Figure::alone("persist", "records of a batch", "mean", batch_rows, None),
        ],
        ..Found::default()
    })
}

struct WorkedOff {
    per_second: f64,
    batch_records: f64,
}

/// Starts the persister and waits until it has folded everything. The time starts with its first committed batch, which
/// does not count: joining the group is not what is measured.
async fn work_off(pipeline: &mut Pipeline<'_>, pool: &PgPool, backlog: usize) -> Result<WorkedOff, Error> {
    let before = progress(pool).await?;
    pipeline.start_service(Kind::Persister).await?;
    let per_second = rate_of_backlog(pool, before, backlog).await?;
    let batches = pipeline
        .service(Kind::Persister)?
        .counter("wakelog_persister_batches_total")
        .await?;
    pipeline.stop_service(Kind::Persister).await?;
    Ok(WorkedOff {
        per_second,
        batch_records: backlog as f64 / batches.max(1.0),
    })
}

/// Entries a second of a backlog that follows `before` folded records, from the first look that sees progress, which does not count,
/// to its end.
pub(super) async fn rate_of_backlog(pool: &PgPool, before: i64, backlog: usize) -> Result<f64, Error> {
    let end = before + backlog as i64;
    let deadline = Instant::now() + WAIT;
    let mut first: Option<(Instant, i64)> = None;
    let (took, counted) = loop {
        let reached = progress(pool).await?;
        let now = Instant::now();
        if reached > before {
            let (since, from) = *first.get_or_insert((now, reached));
            if reached >= end {
                break (now - since, reached - from);
            }
        }
        if now > deadline {
            return Err(Error::Late {
                what: "the end of the backlog",
                seconds: WAIT.as_secs(),
            });
        }
        sleep(LOOK).await;
    };
    match counted {
        0 => Err(Error::Wrong(
            "the backlog was worked off at one look: too small".to_owned(),
        )),
        counted => Ok(per_second(counted as usize, took)),
    }
}

/// Records of all partitions that are folded.
pub(super) async fn progress(pool: &PgPool) -> Result<i64, Error> {
    Ok(
        sqlx::query_scalar("SELECT coalesce(sum(next_offset), 0)::bigint FROM stream_progress")
            .fetch_one(pool)
            .await?,
    )
}

/// Both sides start with nothing to be written back. Only some roles may ask for it; without it the figures are noisier.
pub(super) async fn checkpoint(pool: &PgPool) {
    sqlx::query("CHECKPOINT").execute(pool).await.ok();
}
