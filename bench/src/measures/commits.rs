//! Pipelined commits, ack by the log, persister stopped; beside a raw producer with as much in flight.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use wakelog_client::Writer;
use wakelog_model::limits::REMEMBERED_ENTRIES;
use wakelog_proto::v1::AckLevel;

use super::{Run, per_second};
use crate::Error;
use crate::baseline::producer::RawProducer;
use crate::pipeline::Pipeline;
use crate::records::records_of;
use crate::report::{Figure, Found, Goal};
use crate::service::Kind;
use crate::text::Transcript;

/// Writers on each partition.
const WRITERS_PER_PARTITION: usize = 2;

/// Entries of a round, over all writers.
const ENTRIES: usize = 80_000;

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let sessions = pipeline.hold_sessions(WRITERS_PER_PARTITION).await?;
    let mut writers = Vec::new();
    for session in &sessions {
        let connection = pipeline.connect().await?;
        writers.push(session.writer(&connection, AckLevel::Log, 0).await?);
    }
    pipeline.stop_service(Kind::Persister).await?;

    let per_writer = run.options.scaled(ENTRIES, sessions.len() * 16) / sessions.len();
    let entries = Transcript::new(run.options.seed).entries(per_writer * sessions.len());
    let records = records_of(&sessions, &entries, 1);
    let entries: Arc<[Bytes]> = entries.into();
    let producer = RawProducer::new(&pipeline.stage.raw_stream)?;
    let in_flight = sessions.len() * REMEMBERED_ENTRIES;

    let (mut ours, mut baseline) = (Vec::new(), Vec::new());
    for round in run.rounds() {
        let raw = producer.publish_all(&records, in_flight).await?;
        let took;
        (took, writers) = commit_all(writers, &entries, per_writer).await?;
        if round.counts() {
            baseline.push(per_second(entries.len(), raw));
            ours.push(per_second(entries.len(), took));
        }
    }
    let goal = Some(Goal::RatioAtLeast(0.5));
    let figure = Figure::beside("commits", "pipelined commits", "entries/s", ours, baseline, goal);
    Ok(Found {
        figures: vec![figure],
        ..Found::default()
    })
}

/// Every writer appends its share, all at the same time. Returns how long it took until the last was acknowledged.
async fn commit_all(
    writers: Vec<Writer>,
    entries: &Arc<[Bytes]>,
    per_writer: usize,
) -> Result<(Duration, Vec<Writer>), Error> {
    let count = writers.len();
    let start = Arc::new(Barrier::new(count + 1));
    let mut tasks = JoinSet::new();
    for (index, mut writer) in writers.into_iter().enumerate() {
        let (start, entries) = (Arc::clone(&start), Arc::clone(entries));
        tasks.spawn(async move {
            start.wait().await;
            // The same deal as the raw records': the same bytes in the same session.
            for entry in entries.iter().skip(index).step_by(count).take(per_writer) {
                writer.append(entry.clone(), false).await?;
            }
            writer.drain().await?;
            Ok::<_, Error>((index, writer))
        });
    }
    start.wait().await;
    let started = Instant::now();
    let mut back = Vec::with_capacity(count);
    while let Some(done) = tasks.join_next().await {
        back.push(done.map_err(|error| Error::Wrong(error.to_string()))??);
    }
    let took = started.elapsed();
    back.sort_by_key(|(index, _)| *index);
    Ok((took, back.into_iter().map(|(_, writer)| writer).collect()))
}
