//! From the call to the first byte of the body, on an idle pipeline: authorise, look up, bind, have it folded, read.

use wakelog_proto::v1::AckLevel;

use super::Run;
use crate::Error;
use crate::pipeline::Pipeline;
use crate::report::{Curve, Figure, Found, Goal};
use crate::resumed::resume;
use crate::stats::{milliseconds, percentile};
use crate::text::Transcript;

/// Resumes of a round.
const RESUMES: usize = 200;

/// Entries of each session.
const ENTRIES: usize = 20;

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let sessions = pipeline.hold_sessions(1).await?;
    let connection = pipeline.connect().await?;
    let mut transcript = Transcript::new(run.options.seed);
    for session in &sessions {
        let mut writer = session.writer(&connection, AckLevel::Store, 0).await?;
        for entry in transcript.entries(ENTRIES) {
            writer.append(entry, false).await?;
        }
        writer.drain().await?;
    }
    let resumes = run.options.scaled(RESUMES, 20);
    let (mut p50, mut p99, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for round in run.rounds() {
        let mut took = Vec::new();
        for session in sessions.iter().cycle().take(resumes) {
            took.push(resume(&connection, &session.id).await?.first_byte);
        }
        if round.counts() {
            let took = milliseconds(&took);
            p50.extend(percentile(&took, 50.0));
            p99.extend(percentile(&took, 99.0));
            all.extend(took);
        }
    }
    let goal = Some(Goal::AtMost(50.0));
    Ok(Found {
        figures: vec![
            Figure::alone("barrier", "first byte of a resume p50", "ms", p50, None),
            Figure::alone("barrier", "first byte of a resume p99", "ms", p99, goal),
        ],
        curves: vec![Curve {
            measure: "barrier",
            name: "first byte",
            values: all,
        }],
        ..Found::default()
    })
}
