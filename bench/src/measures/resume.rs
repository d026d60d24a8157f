//! A resume; beside a streamed `SELECT` of the same rows.

use wakelog_proto::v1::AckLevel;

use super::Run;
use crate::Error;
use crate::baseline::read::read;
use crate::pipeline::Pipeline;
use crate::report::{Figure, Found, Goal};
use crate::resumed::resume;
use crate::text::Transcript;

/// Plain bytes of the session.
const BYTES: usize = 100_000_000;

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let connection = pipeline.connect().await?;
    let session = pipeline.hold_session(&connection).await?;
    run.say("writing the session");
    let mut writer = session.writer(&connection, AckLevel::Store, 0).await?;
    let mut transcript = Transcript::new(run.options.seed);
    let mut length = 0;
    while length < run.options.scaled(BYTES, 100_000) {
        let entry = transcript.entry();
        length += entry.len();
        writer.append(entry, false).await?;
    }
    writer.drain().await?;
    drop(writer);

    let pool = pipeline.stage.pool().await?;
    // As a database that has had the session for a while: rows are visible to all, statistics are there.
    sqlx::query("VACUUM (ANALYZE) agent_session_transcript_entries")
        .execute(&pool)
        .await?;
    let megabytes = length as f64 / 1e6;
    let (mut ours, mut baseline) = (Rounds::default(), Rounds::default());
    for round in run.rounds() {
        let raw = read(&pool, &session.id).await?;
        let resumed = resume(&connection, &session.id).await?;
        if resumed.length != length as u64 || raw.plain_length != length as u64 {
            return Err(Error::Wrong(format!(
                "{} bytes were resumed and {} read, {length} were written",
                resumed.length, raw.plain_length
            )));
        }
        if round.counts() {
            baseline.add(raw.first_row.as_secs_f64(), raw.whole.as_secs_f64(), megabytes);
            ours.add(
                resumed.first_byte.as_secs_f64(),
                resumed.whole.as_secs_f64(),
                megabytes,
            );
        }
    }
    let (rate, first) = (Some(Goal::RatioAtLeast(0.3)), "time to first byte");
    // The goal is about 100 MB; a smaller scale has to be as fast for what it has.
    let seconds = Some(Goal::AtMost(megabytes / 100.0));
    Ok(Found {
        figures: vec![
            Figure::beside("resume", "rate", "MB/s", ours.rates, baseline.rates, rate),
            Figure::alone("resume", "whole session", "s", ours.seconds, seconds),
            Figure::beside("resume", first, "ms", ours.first_ms, baseline.first_ms, None),
        ],
        ..Found::default()
    })
}

#[derive(Default)]
struct Rounds {
    rates: Vec<f64>,
    seconds: Vec<f64>,
    first_ms: Vec<f64>,
}

impl Rounds {
    fn add(&mut self, first_seconds: f64, seconds: f64, megabytes: f64) {
        self.rates.push(megabytes / seconds);
        self.seconds.push(seconds);
        self.first_ms.push(first_seconds * 1_000.0);
    }
}
