//! `GET`s of the objects and a `SELECT` of the rows that a body is spliced of: the same bytes, neither decompressed nor checked.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use uuid::Uuid;

use super::objects::RawObjects;
use super::read::read;
use crate::Error;
use crate::manifest::object_keys;

/// Objects that are read at a time: as many as a resume reads.
const AHEAD: usize = 3;

/// Reads the session's objects, then its rows. Returns how long that took, with the look at the manifest.
pub(crate) async fn read_spliced(
    pool: &PgPool,
    objects: &RawObjects,
    session: Uuid,
) -> Result<Duration, Error> {
    let started = Instant::now();
    let keys = object_keys(pool, &[session]).await?;
    objects.read_all(keys, AHEAD).await?;
    read(pool, &session.to_string()).await?;
    Ok(started.elapsed())
}
