//! The archiver moving a backlog to the archive; beside zstd and a `PUT` of the same bytes, and beside a `PUT` of the same
//! objects.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sqlx::PgPool;
use uuid::Uuid;
use wakelog_archive::{MOST_READ_BYTES, ObjectStore};

use super::Run;
use super::persist::checkpoint;
use crate::Error;
use crate::baseline::compress::compress_and_put;
use crate::baseline::objects::{RawObject, RawObjects};
use crate::log::{Growing, Log};
use crate::manifest::{Archived, archived, object_keys, wait_archived};
use crate::pipeline::Pipeline;
use crate::report::{Figure, Found, Goal};
use crate::service::Kind;
use crate::text::Transcript;

/// Sessions of each partition.
const SESSIONS_PER_PARTITION: usize = 4;

/// Plain bytes of a round's backlog.
const BYTES: usize = 200_000_000;

/// Objects at a time: sessions that an archiver works on at a time.
const AT_A_TIME: usize = 2;

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let held = pipeline.hold_sessions(SESSIONS_PER_PARTITION).await?;
    let mut sessions: Vec<Growing> = held.into_iter().map(Growing::new).collect();
    let ids = sessions.iter().map(Growing::id).collect::<Result<Vec<_>, _>>()?;
    let pool = pipeline.stage.pool().await?;
    let log = Log::new(pipeline, &pool)?;
    let bucket = pipeline.stage.bucket()?;
    let objects = ObjectStore::new(bucket.archive())?;
    let raw = RawObjects::new(bucket.raw());
    let per_session = run.options.scaled(BYTES, sessions.len() * 20_000) / sessions.len();
    let mut transcript = Transcript::new(run.options.seed);

    let mut rounds = Rounds::default();
    let mut known: HashSet<String> = HashSet::new();
    for round in run.rounds() {
        let bodies: Vec<Vec<Bytes>> = sessions.iter().map(|_| transcript.bytes(per_session)).collect();
        fill(&log, &mut sessions, &bodies, &transcript.entry()).await?;
        checkpoint(&pool).await;
        let moved = move_backlog(pipeline, &pool, &sessions, &ids).await?;

        let mut keys = object_keys(&pool, &ids).await?;
        keys.retain(|key| known.insert(key.clone()));
        let copies = copies(&objects, keys).await?;
        let object_bytes: usize = copies.iter().map(RawObject::length).sum();
        let put = raw.put_all(copies, AT_A_TIME).await?;
        let plain_bytes: usize = bodies.iter().flatten().map(Bytes::len).sum();
        let named = (0..).map(|number: usize| format!("compressed/{number}"));
        let floor = compress_and_put(&raw, named.zip(bodies).collect(), AT_A_TIME).await?;
        if round.counts() {
            rounds.plain.push(moved.plain_rate);
            rounds.floor.push(megabytes_per_second(plain_bytes, floor));
            rounds.compressed.push(moved.object_rate);
            rounds.put.push(megabytes_per_second(object_bytes, put));
            rounds.puts.push(moved.puts_per_megabyte);
        }
    }
    Ok(rounds.found())
}

/// Fills the hot tail. The checkpoint at the end of each session makes everything before it due.
async fn fill(log: &Log, sessions: &mut [Growing], bodies: &[Vec<Bytes>], last: &Bytes) -> Result<(), Error> {
    for (session, body) in sessions.iter_mut().zip(bodies) {
        let mut records: Vec<_> = body.iter().map(|entry| session.next(entry, false)).collect();
        records.push(session.next(last, true));
        log.publish(&records).await?;
    }
    log.wait_folded(sessions).await
}

struct Moved {
    plain_rate: f64,
    object_rate: f64,
    puts_per_megabyte: f64,
}

/// Starts the archiver and waits until nothing is due. The time starts with its first recorded segments, which do not count:
/// joining the group and the first look at all sessions are not what is measured.
async fn move_backlog(
    pipeline: &mut Pipeline<'_>,
    pool: &PgPool,
    sessions: &[Growing],
    ids: &[Uuid],
) -> Result<Moved, Error> {
    let before = archived(pool, ids).await?;
    pipeline.start_archiver(None).await?;
    let puts = pipeline.archiver_puts().await?;
    // All but the checkpoint.
    let due: u64 = sessions.iter().map(|session| session.last_seq - 1).sum();
    let mut looks: [Option<(Instant, Archived)>; 2] = [None, None];
    let end = wait_archived(pool, ids, due, |now, found| {
        if found.segments > before.segments {
            looks[0].get_or_insert((now, found));
        }
        looks[1] = Some((now, found));
    })
    .await?;
    let puts = pipeline.archiver_puts().await? - puts;
    pipeline.stop_service(Kind::Archiver).await?;
    let [Some((since, first)), Some((until, last))] = looks else {
        return Err(Error::Wrong("the backlog moved unseen".to_owned()));
    };
    if end.entries as u64 != due || last.segments == first.segments {
        return Err(Error::Wrong(format!(
            "{} of {due} entries are in {} segments, {} of them at the first look",
            end.entries, end.segments, first.segments
        )));
    }
    let took = until - since;
    Ok(Moved {
        plain_rate: megabytes_per_second((last.plain_bytes - first.plain_bytes) as usize, took),
        object_rate: megabytes_per_second((last.object_bytes - first.object_bytes) as usize, took),
        puts_per_megabyte: puts / ((end.plain_bytes - before.plain_bytes) as f64 / 1e6),
    })
}

/// The objects' bytes, to be put again.
async fn copies(objects: &ObjectStore, keys: Vec<String>) -> Result<Vec<RawObject>, Error> {
    let mut copies = Vec::with_capacity(keys.len());
    for key in keys {
        let bytes = objects.get_bytes(&key, MOST_READ_BYTES).await?;
        copies.push(RawObject::new(key, bytes));
    }
    Ok(copies)
}

fn megabytes_per_second(bytes: usize, took: Duration) -> f64 {
    bytes as f64 / 1e6 / took.as_secs_f64()
}

#[derive(Default)]
struct Rounds {
    plain: Vec<f64>,
    floor: Vec<f64>,
    compressed: Vec<f64>,
    put: Vec<f64>,
    puts: Vec<f64>,
}

impl Rounds {
    fn found(self) -> Found {
        let goal = Some(Goal::RatioAtLeast(0.5));
        let (plain, compressed) = ("plain bytes, beside zstd and PUT", "compressed bytes, beside PUT");
        Found {
            figures: vec![
                Figure::beside("archive", plain, "MB/s", self.plain, self.floor, goal),
                Figure::beside("archive", compressed, "MB/s", self.compressed, self.put, None),
                Figure::alone("archive", "uploads for a plain MB", "PUTs", self.puts, None),
            ],
            ..Found::default()
        }
    }
}
