//! The archive's half in Postgres: what is due, what is on its way to the object store, and the manifest.
//!
//! | module | decision |
//! |---|---|
//! | [`rows`] | what goes in and comes out |
//! | `hot_tails` | what the hot tail still holds of a session, and what of it may go |
//! | `holes` | which complete entries are nowhere |
//! | `staging` | a row precedes each PUT |
//! | `flush` | manifest row and prune in one transaction (put-before-prune) |
//! | `manifest` | rows of segments: written and read |
//! | `orphans` | an object that nobody records is condemned before it is deleted |
//! | `snapshots` | a session in one view of the database, and the states that were stored of it |
//! | `due` | which sessions need a new state, which erased ones a sweep |
//! | `coverage` | from which offset on the topic is still needed |
//! | `erasures` | what was swept of an erased session |
//!
//! Locks are taken in one order: the session's row, a staged object, rows of the manifest, entries. A batch of the
//! persister takes unfinished entries first and then sessions in the order of their ids; nothing here touches an
//! unfinished entry or holds the rows of two sessions. So nobody waits in a circle.

mod coverage;
mod due;
mod erasures;
mod flush;
mod holes;
mod hot_tails;
mod manifest;
mod orphans;
pub mod rows;
mod snapshots;
mod staging;

use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Postgres, Row as _, Transaction};
use uuid::Uuid;
use wakelog_model::SessionId;

use crate::Error;
use crate::error::{During, convert};
use crate::numbers::from_bigint;

/// The longest age that is asked for: the database's calendar is not endless.
const LONGEST_AGE_SECONDS: f64 = 1e9;

/// What of a session's row decides about its archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LockedSession {
    erased: bool,
    last_entry_seq: u64,
    last_checkpoint_seq: u64,
}

/// Locks the session's row against batches, flushes and sweeps until the transaction ends. The row's `xmin` stays.
async fn lock_session(
    connection: &mut PgConnection,
    session: SessionId,
    during: During,
) -> Result<LockedSession, Error> {
    let row = sqlx::query(
        "SELECT erased, last_entry_seq, last_checkpoint_seq FROM agent_sessions
         WHERE session_id = $1 FOR NO KEY UPDATE",
    )
    .bind(session.0)
    .fetch_optional(connection)
    .await
    .map_err(|error| convert(during, error))?
    .ok_or_else(|| Error::Bug(format!("session {session} has no row")))?;
    Ok(LockedSession {
        erased: row.try_get("erased").map_err(|error| convert(during, error))?,
        last_entry_seq: number(&row, "last_entry_seq", during)?,
        last_checkpoint_seq: number(&row, "last_checkpoint_seq", during)?,
    })
}

/// Commits. Only for a transaction in which no statement failed: the server answers COMMIT of one that failed with a
/// silent rollback.
pub(crate) async fn commit(transaction: Transaction<'_, Postgres>, what: &'static str) -> Result<(), Error> {
    transaction
        .commit()
        .await
        .map_err(|error| convert(During::ArchiveCommit(what), error))
}

/// A stored bigint that can't be negative.
fn number(row: &PgRow, column: &'static str, during: During) -> Result<u64, Error> {
    from_bigint(
        column,
        row.try_get(column).map_err(|error| convert(during, error))?,
    )
}

/// An age as the database takes it.
fn seconds(age: Duration) -> f64 {
    age.as_secs_f64().min(LONGEST_AGE_SECONDS)
}

/// The first id of a page that starts after `after`; `None` if there can't be one. "From the next id on" and not
/// "after, if given": one condition that an index serves.
fn first_id(after: Option<SessionId>) -> Option<Uuid> {
    match after {
        None => Some(Uuid::nil()),
        Some(session) => session.0.as_u128().checked_add(1).map(Uuid::from_u128),
    }
}
