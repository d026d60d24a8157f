//! A resume of a short body with a long archived history behind it; beside one without.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio::time::{MissedTickBehavior, interval};

use super::Run;
use crate::Error;
use crate::log::{Growing, Log};
use crate::manifest::{archived, wait_archived};
use crate::pipeline::Pipeline;
use crate::report::{Figure, Found, Goal};
use crate::resumed::resume;
use crate::service::Kind;
use crate::stats::{median, milliseconds};
use crate::text::Transcript;

/// Segments of the history.
const SEGMENTS: usize = 10_000;

/// Plain bytes of a segment, on average.
const SEGMENT_BYTES: usize = 100_000;

/// Plain bytes of the body.
const TAIL_BYTES: usize = 1_000_000;

/// How often a checkpoint is written while the history is made: more often than the archiver looks at the session. Written more
/// seldom, it would find nothing due, and wait.
const TICK: Duration = Duration::from_millis(5);

/// Ticks from one count of the segments to the next.
const TICKS_OF_A_COUNT: usize = 20;

/// Plain bytes that may be published ahead of the segments that there are.
const BYTES_AHEAD: usize = 8 * SEGMENT_BYTES;

/// Plain bytes of a tick that is not to be ahead of them: a checkpoint and a delta.
const LEAST_TICK_BYTES: usize = 1_500;

/// How long the archiver may take until the next count has more; at first it has to join its group.
const WAIT: Duration = Duration::from_secs(60);

/// Resumes of a round, of each of the two sessions.
const RESUMES: usize = 20;

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let connection = pipeline.connect().await?;
    let mut old = Growing::new(pipeline.hold_session(&connection).await?);
    let mut young = Growing::new(pipeline.hold_session(&connection).await?);
    let pool = pipeline.stage.pool().await?;
    let log = Log::new(pipeline, &pool)?;
    let mut transcript = Transcript::new(run.options.seed);
    pipeline.start_archiver(None).await?;
    write_history(run, &log, &pool, &mut old, &mut transcript).await?;

    let mut lengths = Vec::new();
    for session in [&mut old, &mut young] {
        let body = transcript.bytes(TAIL_BYTES);
        lengths.push(body.iter().map(|entry| entry.len() as u64).sum::<u64>());
        // The first one supersedes all that is before it.
        let records: Vec<_> = body
            .iter()
            .enumerate()
            .map(|(index, entry)| session.next(entry, index == 0))
            .collect();
        log.publish(&records).await?;
        log.wait_folded(std::slice::from_ref(session)).await?;
        lengths.push(records.len() as u64);
    }
    let [old_length, old_entries, young_length, _] = lengths[..] else {
        return Err(Error::Wrong("there are not two bodies".to_owned()));
    };
    let ids = [old.id()?];
    wait_archived(&pool, &ids, old.last_seq - old_entries, |_, _| {}).await?;
    pipeline.stop_service(Kind::Archiver).await?;
    let history = archived(&pool, &ids).await?;
    sqlx::query("VACUUM (ANALYZE)").execute(&pool).await?;

    let (mut ours, mut baseline) = (Vec::new(), Vec::new());
    for round in run.rounds() {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..RESUMES {
            for (session, length, took) in [
                (&young, young_length, &mut without),
                (&old, old_length, &mut with),
            ] {
                let resumed = resume(&connection, &session.session.id).await?;
                if resumed.length != length {
                    let found = resumed.length;
                    return Err(Error::Wrong(format!(
                        "{found} bytes were resumed, {length} were written"
                    )));
                }
                took.push(resumed.whole);
            }
        }
        if round.counts() {
            ours.extend(median(&milliseconds(&with)));
            baseline.extend(median(&milliseconds(&without)));
        }
    }
    let (goal, resumes) = (Some(Goal::RatioAtMost(1.2)), "resume of 1 MB, beside no history");
    let (segments, bytes) = (history.segments as f64, history.plain_bytes as f64 / 1e6);
    Ok(Found {
        figures: vec![
            Figure::beside("history", resumes, "ms", ours, baseline, goal),
            Figure::alone(
                "history",
                "segments before the body",
                "number",
                vec![segments],
                None,
            ),
            Figure::alone("history", "archived before the body", "MB", vec![bytes], None),
        ],
        ..Found::default()
    })
}

/// A checkpoint and some deltas after it at each tick, until the archiver has made enough segments of what each checkpoint
/// superseded. How much comes at a tick keeps their mean: an archiver that finds more than one tick at a look makes one segment
/// of them.
async fn write_history(
    run: &Run<'_>,
    log: &Log,
    pool: &PgPool,
    session: &mut Growing,
    transcript: &mut Transcript,
) -> Result<(), Error> {
    let ids = [session.id()?];
    let wanted = run.options.scaled(SEGMENTS, 20);
    let (mut segments, mut published, mut said) = (0, 0, 0);
    let mut last_more = Instant::now();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    run.say(&format!("writing {wanted} segments"));
    for tick in 0.. {
        ticks.tick().await;
        let bytes = match published < segments * SEGMENT_BYTES + BYTES_AHEAD {
            true => SEGMENT_BYTES,
            false => LEAST_TICK_BYTES,
        };
        let mut records = Vec::new();
        for entry in transcript.bytes(bytes) {
            published += entry.len();
            records.push(session.next(&entry, records.is_empty()));
        }
        log.publish(&records).await?;
        if tick % TICKS_OF_A_COUNT != 0 {
            continue;
        }
        let found = archived(pool, &ids).await?.segments as usize;
        if found > segments {
            (segments, last_more) = (found, Instant::now());
        }
        if segments >= wanted {
            break;
        }
        if last_more.elapsed() > WAIT {
            return Err(Error::Late {
                what: "a segment of the history",
                seconds: WAIT.as_secs(),
            });
        }
        if segments >= said + 1_000 {
            said = segments;
            run.say(&format!("{segments} of {wanted} segments"));
        }
    }
    log.wait_folded(std::slice::from_ref(session)).await
}
