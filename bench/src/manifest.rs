//! What has moved to the archive, and what has not, as the database says it.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio::time::sleep;
use uuid::Uuid;

use crate::Error;

/// How often it is looked how far the archiver is.
const LOOK: Duration = Duration::from_millis(5);

/// How long the archiver may take.
const WAIT: Duration = Duration::from_secs(180);

/// Segments of some sessions, summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Archived {
    pub(crate) segments: i64,
    pub(crate) entries: i64,
    pub(crate) plain_bytes: i64,
    pub(crate) object_bytes: i64,
}

/// What the manifest has of the sessions.
pub(crate) async fn archived(pool: &PgPool, sessions: &[Uuid]) -> Result<Archived, Error> {
    let sums = sqlx::query_as(
        "SELECT count(*) AS segments, coalesce(sum(entries), 0)::bigint AS entries,
                coalesce(sum(plain_bytes), 0)::bigint AS plain_bytes,
                coalesce(sum(object_bytes), 0)::bigint AS object_bytes
         FROM agent_session_archive_segments WHERE session_id = ANY($1)",
    );
    Ok(sums.bind(sessions).fetch_one(pool).await?)
}

/// The sessions' objects by name, with the entries that each one holds.
pub(crate) async fn object_keys(pool: &PgPool, sessions: &[Uuid]) -> Result<Vec<String>, Error> {
    let keys = sqlx::query_scalar(
        "SELECT object_key FROM agent_session_archive_segments WHERE session_id = ANY($1) ORDER BY object_key",
    );
    Ok(keys.bind(sessions).fetch_all(pool).await?)
}

/// What the hot tail holds of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Hot {
    pub(crate) rows: i64,
    pub(crate) plain_bytes: i64,
}

/// Rows and plain bytes of a session in the hot tail.
pub(crate) async fn hot(pool: &PgPool, session: Uuid) -> Result<Hot, Error> {
    let sums = sqlx::query_as(
        "SELECT count(*) AS rows, coalesce(sum(plain_length), 0)::bigint AS plain_bytes
         FROM agent_session_transcript_entries WHERE session_id = $1",
    );
    Ok(sums.bind(session).fetch_one(pool).await?)
}

/// Waits until the manifest has so many entries of the sessions; `seen` is told of each look.
pub(crate) async fn wait_archived(
    pool: &PgPool,
    sessions: &[Uuid],
    entries: u64,
    mut seen: impl FnMut(Instant, Archived),
) -> Result<Archived, Error> {
    let deadline = Instant::now() + WAIT;
    loop {
        let archived = archived(pool, sessions).await?;
        let now = Instant::now();
        seen(now, archived);
        if archived.entries as u64 >= entries {
            return Ok(archived);
        }
        give_up_after(deadline, now)?;
        sleep(LOOK).await;
    }
}

/// Waits until the hot tail has at most so many plain bytes of the session.
pub(crate) async fn wait_moved(pool: &PgPool, session: Uuid, plain_bytes: u64) -> Result<Hot, Error> {
    let deadline = Instant::now() + WAIT;
    loop {
        let hot = hot(pool, session).await?;
        if hot.plain_bytes as u64 <= plain_bytes {
            return Ok(hot);
        }
        give_up_after(deadline, Instant::now())?;
        // The sum reads all of the rows: a look more seldom leaves the archiver the machine.
        sleep(20 * LOOK).await;
    }
}

fn give_up_after(deadline: Instant, now: Instant) -> Result<(), Error> {
    match now > deadline {
        true => Err(Error::Late {
            what: "the archiver's end",
            seconds: WAIT.as_secs(),
        }),
        false => Ok(()),
    }
}
