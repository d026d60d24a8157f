//! The whole pipeline for twenty minutes at half of what it can do: what grows that should not?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};
use wakelog_client::Connection;
use wakelog_proto::v1::AckLevel;

use super::{Run, per_second};
use crate::Error;
use crate::pipeline::{HeldSession, Pipeline};
use crate::report::{Figure, Found};
use crate::service::Kind;
use crate::text::Transcript;

/// Sessions, each with a writer: two on each partition.
const SESSIONS_PER_PARTITION: usize = 2;

/// Entries between two checkpoints.
const ENTRIES_PER_CHECKPOINT: u64 = 4_000;

/// Entries that a writer sends again and again.
const PAYLOAD: usize = 4_000;

/// How long the maximum is measured, after as long a warm-up, and how long the soak takes, at scale 1.
const MAXIMUM_SECONDS: usize = 30;
const SOAK_SECONDS: usize = 1_200;

/// A writer sends what is due so often.
const TICK: Duration = Duration::from_millis(20);

/// How often everything is looked at.
const LOOK: Duration = Duration::from_secs(10);

/// How long the last acknowledgements may take.
const DRAIN: Duration = Duration::from_secs(120);

/// Services that are looked at, and what their figures are called.
const SERVICES: [(Kind, [&str; 3]); 4] = [
    (
        Kind::Ingest,
        ["ingest, memory", "ingest, open files", "ingest, threads"],
    ),
    (
        Kind::Persister,
        ["persister, memory", "persister, open files", "persister, threads"],
    ),
    (
        Kind::Reconstructor,
        [
            "reconstructor, memory",
            "reconstructor, open files",
            "reconstructor, threads",
        ],
    ),
    (
        Kind::Archiver,
        ["archiver, memory", "archiver, open files", "archiver, threads"],
    ),
];

/// What is seen at one look.
#[derive(Debug, Clone, Default)]
struct Look {
    /// MB, open files, threads of each of [`SERVICES`].
    services: Vec<[f64; 3]>,
    connections: f64,
    database_mb: f64,
    lag: f64,
    waiting_jobs: f64,
    acked: u64,
}

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let connection = pipeline.connect().await?;
    let sessions = pipeline.hold_sessions(SESSIONS_PER_PARTITION).await?;
    pipeline.start_archiver(None).await?;
    let pool = pipeline.stage.pool().await?;
    let payload = Arc::new(Transcript::new(run.options.seed).entries(PAYLOAD));
    let mut written = vec![0; sessions.len()];

    run.say("the maximum");
    let seconds = run.options.scaled(MAXIMUM_SECONDS, 5);
    let load = Load::start(&connection, &sessions, &mut written, &payload, None).await?;
    sleep(Duration::from_secs(seconds as u64)).await;
    let (before, begun) = (load.acked(), Instant::now());
    sleep(Duration::from_secs(seconds as u64)).await;
    let maximum = per_second((load.acked() - before) as usize, begun.elapsed());
    load.finish(&mut written).await?;

    let rate = maximum / 2.0;
    run.say(&format!("half of {maximum:.0} entries a second"));
    let seconds = run.options.scaled(SOAK_SECONDS, 40);
    let mut load = Load::start(
        &connection,
        &sessions,
        &mut written,
        &payload,
        Some(rate / sessions.len() as f64),
    )
    .await?;
    let begun = Instant::now();
    let mut looks = Vec::new();
    while begun.elapsed() < Duration::from_secs(seconds as u64) {
        sleep(LOOK.min(Duration::from_secs(seconds as u64 / 4))).await;
        looks.push(look(pipeline, &pool, load.acked()).await?);
        load.check()?;
    }
    let took = begun.elapsed();
    let reached = per_second(looks.last().map_or(0, |look| look.acked) as usize, took);
    load.finish(&mut written).await?;
    let stored: i64 =
        sqlx::query_scalar("SELECT coalesce(sum(last_entry_seq), 0)::bigint FROM agent_sessions")
            .fetch_one(&pool)
            .await?;
    let expected: u64 = written.iter().sum();
    if u64::try_from(stored) != Ok(expected) {
        return Err(Error::Wrong(format!(
            "the sessions have {stored} entries, {expected} were acknowledged"
        )));
    }
    Ok(Found {
        figures: figures(&looks, maximum, reached, rate),
        ..Found::default()
    })
}

/// What has to be flat: the last quarter of the time beside the second one; and the rest as it was.
fn figures(looks: &[Look], maximum: f64, reached: f64, rate: f64) -> Vec<Figure> {
    let quarter = |number: usize| &looks[looks.len() * number / 4..looks.len() * (number + 1) / 4];
    let flat = |what: &'static str, unit: &'static str, of: &dyn Fn(&Look) -> f64| {
        let second = quarter(1).iter().map(of).collect();
        let mut last: Vec<f64> = quarter(3).iter().map(of).collect();
        last.truncate(quarter(1).len());
        Figure::beside("soak", what, unit, last, second, None)
    };
    let mut figures = vec![
        Figure::alone("soak", "the maximum", "entries/s", vec![maximum], None),
        Figure::beside("soak", "half of it", "entries/s", vec![reached], vec![rate], None),
    ];
    for (number, (_, names)) in SERVICES.iter().enumerate() {
        let units = ["MB", "files", "threads"];
        for (index, (name, unit)) in names.iter().copied().zip(units).enumerate() {
            figures.push(flat(name, unit, &|look| look.services[number][index]));
        }
    }
    figures.push(flat("connections to the database", "connections", &|look| {
        look.connections
    }));
    figures.push(flat("size of the database", "MB", &|look| look.database_mb));
    let most = |of: &dyn Fn(&Look) -> f64| vec![looks.iter().map(of).fold(0.0, f64::max)];
    let (lag, jobs) = (
        "most records that were not folded",
        "most sessions that waited for the archiver",
    );
    figures.push(Figure::alone(
        "soak",
        lag,
        "records",
        most(&|look| look.lag),
        None,
    ));
    figures.push(Figure::alone(
        "soak",
        jobs,
        "sessions",
        most(&|look| look.waiting_jobs),
        None,
    ));
    figures
}

async fn look(pipeline: &Pipeline<'_>, pool: &PgPool, acked: u64) -> Result<Look, Error> {
    let mut services = Vec::new();
    for (kind, _) in SERVICES {
        let service = pipeline.service(kind)?;
        let memory = service.resident_memory().unwrap_or_default() as f64 / 1e6;
        services.push([memory, service.open_files(), service.threads()]);
    }
    let (connections, size): (i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()), \
         pg_database_size(current_database())",
    )
    .fetch_one(pool)
    .await?;
    let persister = pipeline.service(Kind::Persister)?;
    let archiver = pipeline.service(Kind::Archiver)?;
    Ok(Look {
        services,
        connections: connections as f64,
        database_mb: size as f64 / 1e6,
        lag: persister.counter("wakelog_persister_lag_records").await?,
        waiting_jobs: archiver.counter("wakelog_archiver_waiting_jobs").await?,
        acked,
    })
}

/// Writers, one for each session.
struct Load {
    acked: Arc<AtomicU64>,
    stop: tokio_util::sync::CancellationToken,
    writers: JoinSet<Result<(usize, u64), Error>>,
}

impl Load {
    /// `rate` is each writer's, in entries a second; without one it goes as fast as it can.
    async fn start(
        connection: &Connection,
        sessions: &[HeldSession],
        written: &mut [u64],
        payload: &Arc<Vec<Bytes>>,
        rate: Option<f64>,
    ) -> Result<Self, Error> {
        let mut load = Self {
            acked: Arc::default(),
            stop: tokio_util::sync::CancellationToken::new(),
            writers: JoinSet::new(),
        };
        for (number, session) in sessions.iter().enumerate() {
            let before = written[number];
            let writer = session.writer(connection, AckLevel::Store, before).await?;
            let writing = Writing {
                writer,
                written: before,
                payload: payload.clone(),
                acked: load.acked.clone(),
            };
            let stop = load.stop.clone();
            load.writers
                .spawn(async move { Ok((number, writing.run(rate, &stop).await?)) });
        }
        Ok(load)
    }

    fn acked(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    /// None may have given up.
    fn check(&mut self) -> Result<(), Error> {
        match self.writers.try_join_next() {
            None => Ok(()),
            Some(Ok(Err(error))) => Err(error),
            Some(_) => Err(Error::Wrong("a writer has ended".to_owned())),
        }
    }

    /// Ends it, and notes how far each session is.
    async fn finish(mut self, written: &mut [u64]) -> Result<(), Error> {
        self.stop.cancel();
        let ending = async {
            while let Some(ended) = self.writers.join_next().await {
                let (number, reached) = ended.map_err(|error| Error::Wrong(error.to_string()))??;
                written[number] = reached;
            }
            Ok(())
        };
        tokio::time::timeout(DRAIN, ending)
            .await
            .unwrap_or(Err(Error::Late {
                what: "the last acknowledgements",
                seconds: DRAIN.as_secs(),
            }))
    }
}

struct Writing {
    writer: wakelog_client::Writer,
    written: u64,
    payload: Arc<Vec<Bytes>>,
    acked: Arc<AtomicU64>,
}

impl Writing {
    /// Returns how many entries the session has then.
    async fn run(
        mut self,
        rate: Option<f64>,
        stop: &tokio_util::sync::CancellationToken,
    ) -> Result<u64, Error> {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (begun, first) = (Instant::now(), self.written);
        let mut counted = self.writer.acked().entry_seq;
        while !stop.is_cancelled() {
            let due = match rate {
                None => self.written + 64,
                Some(rate) => {
                    ticks.tick().await;
                    first + (begun.elapsed().as_secs_f64() * rate) as u64
                }
            };
            while self.written < due {
                let entry = self.payload[self.written as usize % self.payload.len()].clone();
                let checkpoint = self.written.is_multiple_of(ENTRIES_PER_CHECKPOINT);
                self.writer.append(entry, checkpoint).await?;
                self.written += 1;
            }
            let reached = self.writer.acked().entry_seq;
            self.acked.fetch_add(reached - counted, Ordering::Relaxed);
            counted = reached;
        }
        self.writer.drain().await?;
        Ok(self.written)
    }
}
