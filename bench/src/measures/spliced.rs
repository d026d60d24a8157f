//! A resume and an export of a body of which half is in segments; beside raw reads of the same bytes. And what memory they
//! take.

use std::time::Duration;

use super::Run;
use crate::Error;
use crate::baseline::objects::RawObjects;
use crate::baseline::spliced::read_spliced;
use crate::log::{Growing, Log};
use crate::manifest::{archived, wait_moved};
use crate::pipeline::Pipeline;
use crate::report::{Figure, Found, Goal};
use crate::resumed::{export, resume};
use crate::service::Kind;
use crate::text::Transcript;

/// Plain bytes of the body.
const BYTES: usize = 100_000_000;

/// What a reconstructor may need for one body, in MB of 2^20 bytes.
const MEMORY_GOAL_MB: f64 = 64.0;

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let connection = pipeline.connect().await?;
    let mut session = Growing::new(pipeline.hold_session(&connection).await?);
    let id = session.id()?;
    let pool = pipeline.stage.pool().await?;
    run.say("writing the session");
    let entries = Transcript::new(run.options.seed).bytes(run.options.scaled(BYTES, 200_000));
    let length: usize = entries.iter().map(bytes::Bytes::len).sum();
    let records: Vec<_> = entries.iter().map(|entry| session.next(entry, false)).collect();
    drop(entries);
    let log = Log::new(pipeline, &pool)?;
    log.publish(&records).await?;
    drop(records);
    log.wait_folded(std::slice::from_ref(&session)).await?;

    run.say("moving half of it to the archive");
    // Just below what there is: the valve opens once and leaves half of that.
    let valve = length as u64 - 1;
    pipeline.start_archiver(Some(valve)).await?;
    wait_moved(&pool, id, valve / 2).await?;
    pipeline.stop_service(Kind::Archiver).await?;
    let moved = archived(&pool, &[id]).await?;
    let share = moved.plain_bytes as f64 / length as f64;
    if !(0.45..0.55).contains(&share) {
        return Err(Error::Wrong(format!(
            "{share:.2} of the body is in segments, not half"
        )));
    }
    sqlx::query("VACUUM (ANALYZE) agent_session_transcript_entries")
        .execute(&pool)
        .await?;

    // A new process: what it has needed before would hide what it needs now.
    pipeline.stop_service(Kind::Reconstructor).await?;
    pipeline.start_service(Kind::Reconstructor).await?;
    let idle = pipeline.service(Kind::Reconstructor)?.resident_memory();
    let connection = pipeline.connect().await?;
    let objects = RawObjects::new(pipeline.stage.bucket()?.archive());
    let rate = |took: Duration| length as f64 / 1e6 / took.as_secs_f64();
    let (mut baseline, mut resumes, mut exports, mut seconds) = (vec![], vec![], vec![], vec![]);
    for round in run.rounds() {
        let raw = read_spliced(&pool, &objects, id).await?;
        let resumed = resume(&connection, &session.session.id).await?;
        let (exported, exported_length) = export(&connection, &session.session.id).await?;
        if resumed.length != length as u64 || exported_length != length as u64 {
            return Err(Error::Wrong(format!(
                "{} bytes were resumed and {exported_length} exported, {length} were written",
                resumed.length
            )));
        }
        if round.counts() {
            baseline.push(rate(raw));
            resumes.push(rate(resumed.whole));
            exports.push(rate(exported));
            seconds.push(resumed.whole.as_secs_f64());
        }
    }
    let peak = pipeline.service(Kind::Reconstructor)?.peak_memory();
    let above_idle = peak.zip(idle).map(|(peak, idle)| peak.saturating_sub(idle));
    let memory = above_idle.map(|bytes| bytes as f64 / (1024.0 * 1024.0));
    let goal = Some(Goal::AtMost(MEMORY_GOAL_MB));
    Ok(Found {
        figures: vec![
            Figure::beside("spliced", "resume", "MB/s", resumes, baseline.clone(), None),
            Figure::beside("spliced", "export", "MB/s", exports, baseline, None),
            Figure::alone("spliced", "resume of the whole session", "s", seconds, None),
            Figure::alone(
                "spliced",
                "reconstructor above idle",
                "MB",
                memory.into_iter().collect(),
                goal,
            ),
        ],
        ..Found::default()
    })
}
