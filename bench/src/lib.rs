//! Measures Wakelog beside what its engines do raw, each pair in one run, in turn, after a warm-up.
//!
//! | module | decision |
//! |---|---|
//! | [`options`] | what is measured, where, and how long |
//! | `stage` | a topic, a database and a folder of the benchmark's own |
//! | `bucket` | a part of a bucket of the benchmark's own |
//! | `service` | a service as a process of its own: started, waited for, its memory read, stopped |
//! | `pipeline` | the services of a stage, and sessions in them |
//! | [`text`] | the payload: seeded, and it compresses as transcripts do |
//! | `records` | entries as the records that ingest makes of them |
//! | `recordings` | session files that a real agent wrote |
//! | `log` | entries straight into the log, and the wait until they are in the hot tail |
//! | `manifest` | what has moved to the archive, and what has not |
//! | `unary`, `resumed` | one commit, one resume or export |
//! | `baseline` | what the engines do without Wakelog |
//! | [`measures`] | one file per measure |
//! | [`stats`] | medians, percentiles, ratios |
//! | [`report`] | what was measured, and how it is shown |
//! | [`error`] | why a benchmark did not come to an end |

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod baseline;
mod bucket;
pub mod error;
mod log;
mod manifest;
pub mod measures;
pub mod options;
mod pipeline;
mod recordings;
mod records;
pub mod report;
mod resumed;
mod service;
mod stage;
pub mod stats;
pub mod text;
mod unary;

use std::collections::BTreeMap;

use sqlx::Connection as _;
use tokio_util::sync::CancellationToken;

pub use error::Error;
pub use measures::Progress;
pub use options::{Measure, Options};
pub use report::Report;

use measures::Run;
use pipeline::Pipeline;
use report::{Found, MEMORY_GOAL, Machine, Memory};
use stage::Stage;

/// Runs the measures. `stop` ends it early; whatever ends it, its processes are stopped and what it made is dropped.
pub async fn run(
    options: &Options,
    measures: &[Measure],
    progress: Progress<'_>,
    stop: &CancellationToken,
) -> Result<Report, Error> {
    options.check(measures)?;
    let mut report = Report {
        machines: vec![machine(options, measures).await?],
        figures: Vec::new(),
        growth: Vec::new(),
        memory: Vec::new(),
        curves: Vec::new(),
    };
    for measure in measures {
        let run = Run {
            measure: *measure,
            options,
            progress,
        };
        let stage = Stage::set_up(options, *measure).await?;
        let outcome = tokio::select! {
            outcome = Box::pin(on_stage(&run, &stage)) => outcome,
            () = stop.cancelled() => Err(Error::Interrupted),
        };
        stage.tear_down().await;
        let (found, peaks) = outcome?;
        report.figures.extend(found.figures);
        report.growth.extend(found.growth);
        report.curves.extend(found.curves);
        report
            .memory
            .extend(peaks.into_iter().map(|(service, peak_bytes)| Memory {
                measure: measure.name().into(),
                service: service.into(),
                peak_bytes,
                met: peak_bytes < MEMORY_GOAL,
            }));
    }
    Ok(report)
}

/// If this is dropped, so are the services, which kills them.
async fn on_stage(run: &Run<'_>, stage: &Stage) -> Result<(Found, BTreeMap<&'static str, u64>), Error> {
    let mut pipeline = Pipeline::start(run.options, stage).await?;
    let found = run.measure(&mut pipeline).await?;
    Ok((found, pipeline.stop().await?))
}

async fn machine(options: &Options, measures: &[Measure]) -> Result<Machine, Error> {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|load| load.parse().ok());
    let mut connection = sqlx::PgConnection::connect(&options.database_url).await?;
    let postgres = sqlx::query_scalar("SHOW server_version")
        .fetch_one(&mut connection)
        .await?;
    let day = sqlx::query_scalar("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD')")
        .fetch_one(&mut connection)
        .await?;
    connection.close().await?;
    Ok(Machine {
        measures: measures.iter().map(|measure| measure.name().into()).collect(),
        day: Some(day),
        processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        load_before: load,
        postgres,
        replicas: options.replication,
        rounds: options.rounds,
        scale: options.scale,
        seed: options.seed,
    })
}
