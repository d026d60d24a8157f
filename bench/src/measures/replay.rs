//! A replay of the topic into a new database; beside reading the same records and doing nothing with them.

use std::process::Stdio;
use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};
use tokio::process::Command;
use tokio::time::{sleep, timeout};
use wakelog_stream::LogReader;

use super::{Run, per_second};
use crate::Error;
use crate::log::Log;
use crate::pipeline::Pipeline;
use crate::records::records_of;
use crate::report::{Figure, Found};
use crate::service::Kind;
use crate::text::Transcript;

/// Sessions of each partition.
const SESSIONS_PER_PARTITION: usize = 4;

/// Entries of the topic, and how many of them are made at a time.
const ENTRIES: usize = 1_000_000;
const ENTRIES_AT_A_TIME: usize = 32_000;

/// How long the persister, and a replay, may take.
const WAIT: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(100);

/// The same rows give the same text, in whatever order they were written.
const DIGEST: &str = "SELECT concat_ws(' ',
    (SELECT md5(string_agg(session_id::text || encode(fold_state, 'hex'), ' ' ORDER BY session_id)) FROM agent_sessions),
    (SELECT count(*) FROM agent_session_transcript_entries),
    (SELECT bit_xor(('x' || substr(md5(concat_ws(' ', session_id, entry_seq, part, last, checkpoint, generation, encoding,
                                                 plain_length, part_digest, md5(body))), 1, 16))::bit(64)::bigint)
     FROM agent_session_transcript_entries))";

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let records = write(run, pipeline).await?;
    run.say("folding");
    let folded = folded(pipeline, records).await?;
    pipeline.stop_service(Kind::Persister).await?;
    let (mut ours, mut baseline) = (Vec::new(), Vec::new());
    for round in run.rounds() {
        let consumed = consume(pipeline).await?;
        let into = pipeline.stage.make_replayed_database().await?;
        let replayed = replay(run, pipeline, &into).await?;
        let digest = digest(&into).await?;
        if digest != folded {
            return Err(Error::Wrong(format!(
                "the replayed store holds {digest}, the persister's {folded}"
            )));
        }
        if round.counts() {
            baseline.push(per_second(consumed.0, consumed.1));
            ours.push(per_second(consumed.0, replayed));
        }
    }
    Ok(Found {
        figures: vec![Figure::beside(
            "replay",
            "records",
            "records/s",
            ours,
            baseline,
            None,
        )],
        ..Found::default()
    })
}

/// Writes the topic; returns how many records of entries it has.
async fn write(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<usize, Error> {
    let sessions = pipeline.hold_sessions(SESSIONS_PER_PARTITION).await?;
    let log = Log::new(pipeline, &pipeline.stage.pool().await?)?;
    let per_session = run.options.scaled(ENTRIES, sessions.len() * 32) / sessions.len();
    let at_a_time = (ENTRIES_AT_A_TIME / sessions.len()).min(per_session);
    let mut transcript = Transcript::new(run.options.seed);
    let mut written = 0;
    while written < per_session {
        run.say(&format!("writing, {} entries", written * sessions.len()));
        let count = at_a_time.min(per_session - written);
        let entries = transcript.entries(count * sessions.len());
        log.publish(&records_of(&sessions, &entries, written as u64 + 1))
            .await?;
        written += count;
    }
    Ok(written * sessions.len())
}

/// Waits until the persister has folded all of it, and says what it then holds.
async fn folded(pipeline: &Pipeline<'_>, records: usize) -> Result<String, Error> {
    let pool = pipeline.stage.pool().await?;
    let deadline = Instant::now() + WAIT;
    loop {
        let stored: i64 = sqlx::query_scalar("SELECT count(*) FROM agent_session_transcript_entries")
            .fetch_one(&pool)
            .await?;
        if stored as usize == records {
            break;
        }
        if Instant::now() > deadline {
            return Err(Error::Late {
                what: "the persister",
                seconds: WAIT.as_secs(),
            });
        }
        sleep(LOOK).await;
    }
    digest(&pipeline.stage.database_url).await
}

/// Reads every record of every partition, all partitions at once.
async fn consume(pipeline: &Pipeline<'_>) -> Result<(usize, Duration), Error> {
    let reader = LogReader::new(&pipeline.stage.stream)?;
    let begun = Instant::now();
    let mut reading = tokio::task::JoinSet::new();
    for partition in 0..reader.partition_count().await? {
        let reader = reader.clone();
        reading.spawn(async move {
            let marks = reader.watermarks(partition).await?;
            let mut range = reader.read_range(partition, marks.low, marks.high);
            let mut records = 0;
            while let Some(record) = range.recv().await {
                record?;
                records += 1;
            }
            Ok::<usize, wakelog_stream::Error>(records)
        });
    }
    let mut records = 0;
    while let Some(read) = reading.join_next().await {
        records += read.map_err(|error| Error::Wrong(error.to_string()))??;
    }
    Ok((records, begun.elapsed()))
}

/// Runs `wakelog replay`.
async fn replay(run: &Run<'_>, pipeline: &Pipeline<'_>, into: &str) -> Result<Duration, Error> {
    let mut command = Command::new(&run.options.program);
    command
        .arg("--config")
        .arg(pipeline.stage.path("wakelog.toml"))
        .args(["replay", "--into", into])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true);
    let begun = Instant::now();
    let ended = timeout(WAIT, command.status()).await.map_err(|_| Error::Late {
        what: "the replay",
        seconds: WAIT.as_secs(),
    })?;
    let status = ended.map_err(|error| Error::io("starting the replay", error))?;
    match status.success() {
        true => Ok(begun.elapsed()),
        false => Err(Error::Wrong(format!("the replay ended with {status}"))),
    }
}

async fn digest(url: &str) -> Result<String, Error> {
    let mut connection = PgConnection::connect(url).await?;
    let digest = sqlx::query_scalar(DIGEST).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(digest)
}
