//! What appending and resuming cost as a session grows.

use wakelog_proto::v1::AckLevel;

use super::Run;
use crate::Error;
use crate::pipeline::Pipeline;
use crate::report::{Figure, Found, Goal, GrowthPoint};
use crate::resumed::resume;
use crate::stats::{median, milliseconds};
use crate::text::Transcript;
use crate::unary::UnaryWriter;

/// Where it is measured, in bytes of the body.
const SIZES: [usize; 7] = [
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
];

/// Appends of a window, ack by the log.
const LOG_APPENDS: usize = 400;

/// Appends of a window, ack by the hot tail.
const STORE_APPENDS: usize = 100;

/// Resumes at each size.
const RESUMES: usize = 3;

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let connection = pipeline.connect().await?;
    let mut transcript = Transcript::new(run.options.seed);
    let mut session = pipeline.hold_session(&connection).await?;
    let mut length = 0;
    let mut growth = Vec::new();
    for size in SIZES {
        let size = run.options.scaled(size, 10_000);
        run.say(&format!("growing to {} kB", size / 1_000));
        let mut writer = session.writer(&connection, AckLevel::Store, 0).await?;
        while length < size {
            let entry = transcript.entry();
            length += entry.len();
            writer.append(entry, false).await?;
        }
        let last_seq = writer.drain().await?.entry_seq;
        drop(writer);

        let mut writer = UnaryWriter::new(&connection, &session, last_seq)?;
        let mut windows = Vec::new();
        for (level, appends) in [(AckLevel::Log, LOG_APPENDS), (AckLevel::Store, STORE_APPENDS)] {
            let mut took = Vec::new();
            for _ in 0..appends {
                let entry = transcript.entry();
                length += entry.len();
                took.push(writer.commit(entry, level).await?);
            }
            // The first calls of a window find a relay that has something else in its hands.
            windows.push(median(&milliseconds(&took[appends / 4..])).unwrap_or(f64::NAN));
        }

        let (mut first_byte, mut whole) = (Vec::new(), Vec::new());
        for _ in 0..RESUMES {
            let resumed = resume(&connection, &session.id).await?;
            if resumed.length != length as u64 {
                let (resumed, held) = (resumed.length, writer.last_seq());
                return Err(Error::Wrong(format!(
                    "{resumed} bytes were resumed, {length} were written in {held} entries"
                )));
            }
            first_byte.push(resumed.first_byte);
            whole.push(resumed.whole);
        }
        growth.push(GrowthPoint {
            body_bytes: length as u64,
            log_append_ms: windows[0],
            store_append_ms: windows[1],
            resume_ms: median(&milliseconds(&whole)).unwrap_or(f64::NAN),
            first_byte_ms: median(&milliseconds(&first_byte)).unwrap_or(f64::NAN),
        });
        session = pipeline.hold_again(&connection, &session).await?;
    }
    Ok(Found {
        figures: figures(&growth),
        growth,
        ..Found::default()
    })
}

/// Flat means: the largest session costs what the smallest does, and so does every one in between.
fn figures(growth: &[GrowthPoint]) -> Vec<Figure> {
    let (Some(first), Some(last)) = (growth.first(), growth.last()) else {
        return Vec::new();
    };
    let flat = Some(Goal::RatioAtMost(1.5));
    let log = (vec![last.log_append_ms], vec![first.log_append_ms]);
    let store = (vec![last.store_append_ms], vec![first.store_append_ms]);
    vec![
        Figure::beside(
            "growth",
            "append at 100 MB beside 1 MB, log ack",
            "ms",
            log.0,
            log.1,
            flat,
        ),
        Figure::beside(
            "growth",
            "append at 100 MB beside 1 MB, store ack",
            "ms",
            store.0,
            store.1,
            flat,
        ),
    ]
}
