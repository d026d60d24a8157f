//! An agent that never writes a checkpoint: what the safety valve uploads, what it leaves, and what a resume costs then; beside
//! raw reads of the same bytes.

use wakelog_proto::v1::AckLevel;

use super::Run;
use crate::Error;
use crate::baseline::objects::RawObjects;
use crate::baseline::spliced::read_spliced;
use crate::log::Growing;
use crate::manifest::wait_moved;
use crate::pipeline::Pipeline;
use crate::report::{Figure, Found};
use crate::resumed::resume;
use crate::service::Kind;
use crate::text::Transcript;

/// Plain bytes of the session, and the least of them at any scale: more than the valve lets through.
const BYTES: usize = 200_000_000;
const LEAST_BYTES: usize = 20_000_000;

/// Plain bytes that may stay in the hot tail.
const VALVE_BYTES: u64 = 8_000_000;

/// An upload moves this many entries or more, on average: one for each entry would cost more than it saves.
const LEAST_ENTRIES_PER_PUT: f64 = 100.0;

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let connection = pipeline.connect().await?;
    let session = Growing::new(pipeline.hold_session(&connection).await?);
    let (session, id) = (&session.session, session.id()?);
    let pool = pipeline.stage.pool().await?;
    pipeline.start_archiver(Some(VALVE_BYTES)).await?;
    let puts_before = pipeline.archiver_puts().await?;
    run.say("writing the session");
    let mut writer = session.writer(&connection, AckLevel::Store, 0).await?;
    let mut transcript = Transcript::new(run.options.seed);
    let (mut length, mut entries) = (0, 0.0);
    while length < run.options.scaled(BYTES, LEAST_BYTES) {
        let entry = transcript.entry();
        length += entry.len();
        entries += 1.0;
        writer.append(entry, false).await?;
    }
    writer.drain().await?;
    drop(writer);
    let hot = wait_moved(&pool, id, VALVE_BYTES).await?;
    let puts = pipeline.archiver_puts().await? - puts_before;
    pipeline.stop_service(Kind::Archiver).await?;
    if puts > entries / LEAST_ENTRIES_PER_PUT {
        return Err(Error::Wrong(format!(
            "{puts} uploads for {entries} entries: nearly one for each entry"
        )));
    }
    sqlx::query("VACUUM (ANALYZE) agent_session_transcript_entries")
        .execute(&pool)
        .await?;

    let objects = RawObjects::new(pipeline.stage.bucket()?.archive());
    let (mut ours, mut baseline) = (Vec::new(), Vec::new());
    for round in run.rounds() {
        let raw = read_spliced(&pool, &objects, id).await?;
        let resumed = resume(&connection, &session.id).await?;
        if resumed.length != length as u64 {
            let found = resumed.length;
            return Err(Error::Wrong(format!(
                "{found} bytes were resumed, {length} were written"
            )));
        }
        if round.counts() {
            baseline.push(raw.as_secs_f64());
            ours.push(resumed.whole.as_secs_f64());
        }
    }
    let per_megabyte = puts / (length as f64 / 1e6);
    let (uploads, rows) = ("uploads for a plain MB", "left in the hot tail at the end");
    Ok(Found {
        figures: vec![
            Figure::alone("valve", uploads, "PUTs", vec![per_megabyte], None),
            Figure::alone("valve", rows, "rows", vec![hot.rows as f64], None),
            Figure::beside("valve", "resume of 200 MB", "s", ours, baseline, None),
        ],
        ..Found::default()
    })
}
