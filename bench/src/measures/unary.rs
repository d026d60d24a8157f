//! One commit at a time, ack by the log, persister stopped; beside a raw producer with one record in flight.

use std::time::Duration;

use bytes::Bytes;
use wakelog_proto::v1::AckLevel;

use super::Run;
use crate::Error;
use crate::baseline::producer::RawProducer;
use crate::pipeline::{HeldSession, Pipeline};
use crate::records::{part_of_entry, record_of_part};
use crate::report::{Curve, Figure, Found, Goal};
use crate::service::Kind;
use crate::stats::{milliseconds, percentile};
use crate::text::Transcript;
use crate::unary::UnaryWriter;

/// Commits of a round.
const COMMITS: usize = 3_000;

/// Commits that are made in a row before the other side has its turn: what disturbs the machine for a moment disturbs both.
const TURN: usize = 100;

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let connection = pipeline.connect().await?;
    let session = pipeline.hold_session(&connection).await?;
    pipeline.stop_service(Kind::Persister).await?;
    let mut writer = UnaryWriter::new(&connection, &session, 0)?;
    let producer = RawProducer::new(&pipeline.stage.raw_stream)?;
    let entries = Transcript::new(run.options.seed).entries(run.options.scaled(COMMITS, TURN));

    let mut sides = Sides::default();
    for round in run.rounds() {
        let (mut ours, mut baseline) = (Vec::new(), Vec::new());
        for turn in entries.chunks(TURN) {
            baseline.extend(publish(&producer, &session, turn).await?);
            for entry in turn {
                ours.push(writer.commit(entry.clone(), AckLevel::Log).await?);
            }
        }
        if round.counts() {
            sides.add(&ours, &baseline);
        }
    }
    Ok(sides.found())
}

async fn publish(
    producer: &RawProducer,
    session: &HeldSession,
    entries: &[Bytes],
) -> Result<Vec<Duration>, Error> {
    let mut took = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let record = record_of_part(session, part_of_entry(session, index as u64 + 1, entry));
        took.push(producer.publish_one(&record).await?);
    }
    Ok(took)
}

#[derive(Default)]
struct Sides {
    p50: [Vec<f64>; 2],
    p99: [Vec<f64>; 2],
    all: [Vec<f64>; 2],
}

impl Sides {
    fn add(&mut self, ours: &[Duration], baseline: &[Duration]) {
        for (side, took) in [ours, baseline].into_iter().enumerate() {
            let took = milliseconds(took);
            self.p50[side].extend(percentile(&took, 50.0));
            self.p99[side].extend(percentile(&took, 99.0));
            self.all[side].extend(took);
        }
    }

    fn found(self) -> Found {
        let Self {
            p50: [ours_p50, baseline_p50],
            p99: [ours_p99, baseline_p99],
            all: [ours, baseline],
        } = self;
        let goal = Some(Goal::RatioAtMost(2.0));
        let curve = |name, values| Curve {
            measure: "unary",
            name,
            values,
        };
        Found {
            figures: vec![
                Figure::beside("unary", "ack p50", "ms", ours_p50, baseline_p50, None),
                Figure::beside("unary", "ack p99", "ms", ours_p99, baseline_p99, goal),
            ],
            curves: vec![curve("Wakelog", ours), curve("raw producer", baseline)],
            ..Found::default()
        }
    }
}
