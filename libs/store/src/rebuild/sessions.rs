//! A session as a state of the archive has it, and what is known of an erased one.

use sqlx::PgConnection;
use uuid::Uuid;
use wakelog_model::SessionId;

use super::rows::RestoredSession;
use super::standing::REBUILD;
use crate::archive::commit;
use crate::batch::sessions::{erase, upsert_lifetimes, upsert_sessions, write_access};
use crate::error::{During, convert};
use crate::numbers::{to_bigint, to_integer};
use crate::store::give_up;
use crate::{Error, Store};

const CHANGE: During = During::Archive(REBUILD);

/// Erased sessions whose sub-sessions are looked for at a time.
const ERASED_AT_A_TIME: i64 = 500;

impl Store {
    /// Stores the session; its unfinished parts and its segments are there by then. Records the state as the session's newest.
    /// Nothing happens to one that has a row. [`Error::Bug`] once the states are marked as loaded.
    pub async fn restore_session(&self, restored: &RestoredSession) -> Result<(), Error> {
        let mut transaction = self.begin().await?;
        match restore(&mut transaction, restored).await {
            Ok(()) => commit(transaction, REBUILD).await,
            Err(error) => {
                give_up(transaction).await;
                Err(error)
            }
        }
    }

    /// Stores that the session is erased: an owner whom nobody is, and nothing else. Nothing happens to one that has a row.
    pub async fn restore_erased(&self, session: SessionId, partition: i32) -> Result<(), Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(
            "WITH pinned AS (
                 INSERT INTO session_pins (session_id, partition) VALUES ($1, $2) ON CONFLICT (session_id) DO NOTHING
             )
             INSERT INTO agent_sessions
                    (session_id, partition, owner, labels, parent, subpath, fold_state,
                     last_entry_seq, last_checkpoint_seq, generation, lifetime_status, erased)
             VALUES ($1, $2, '', '{}', NULL, '', '', 0, 0, 0, 0, true)
             ON CONFLICT (session_id) DO NOTHING",
        )
        .bind(session.0)
        .bind(partition)
        .execute(&mut *connection)
        .await
        .map_err(|error| convert(CHANGE, error))?;
        Ok(())
    }

    /// Erases what descends from erased sessions: a state or a record of a sub-session knows nothing of its parent's end.
    pub async fn erase_below_erased(&self) -> Result<(), Error> {
        let mut after = Uuid::nil();
        loop {
            let mut transaction = self.begin().await?;
            let erased: Vec<Uuid> = sqlx::query_scalar(
                "SELECT session_id FROM agent_sessions WHERE erased AND session_id > $1
                 ORDER BY session_id LIMIT $2",
            )
            .bind(after)
            .bind(ERASED_AT_A_TIME)
            .fetch_all(&mut *transaction)
            .await
            .map_err(|error| convert(CHANGE, error))?;
            let Some(last) = erased.last() else {
                give_up(transaction).await;
                return Ok(());
            };
            after = *last;
            let erased: Vec<SessionId> = erased.into_iter().map(SessionId).collect();
            erase(&mut transaction, &erased).await?;
            commit(transaction, REBUILD).await?;
        }
    }
}

async fn restore(connection: &mut PgConnection, restored: &RestoredSession) -> Result<(), Error> {
    let convert = |error| convert(CHANGE, error);
    let id = restored.session.session.0;
    // The lock makes the mark wait for this transaction, or this transaction see the mark.
    let loading: Option<bool> =
        sqlx::query_scalar("SELECT true FROM store_rebuilds WHERE NOT states_loaded FOR SHARE")
            .fetch_optional(&mut *connection)
            .await
            .map_err(convert)?;
    if loading.is_none() {
        return Err(Error::Bug("a state came after all states were loaded".to_owned()));
    }
    let is_there: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT FROM agent_sessions WHERE session_id = $1)")
            .bind(id)
            .fetch_one(&mut *connection)
            .await
            .map_err(convert)?;
    if is_there {
        return Ok(());
    }
    let lifetimes: Vec<_> = restored
        .lifetimes
        .iter()
        .map(|(write, _)| write.clone())
        .collect();
    upsert_sessions(connection, std::slice::from_ref(&restored.session)).await?;
    upsert_lifetimes(connection, &lifetimes).await?;
    write_access(connection, &restored.access).await?;
    set_times(connection, restored).await?;
    // The row's version is this transaction's: what is folded later changes it.
    sqlx::query(
        "INSERT INTO session_archive_snapshots (session_id, incarnation, next_offset, last_entry_seq, row_version)
         SELECT session_id, $2, $3, last_entry_seq, xmin::text FROM agent_sessions WHERE session_id = $1",
    )
    .bind(id)
    .bind(to_integer("incarnation", restored.incarnation)?)
    .bind(to_bigint("next_offset", restored.next_offset)?)
    .execute(connection)
    .await
    .map_err(convert)?;
    Ok(())
}

async fn set_times(connection: &mut PgConnection, restored: &RestoredSession) -> Result<(), Error> {
    let convert = |error| convert(CHANGE, error);
    let id = restored.session.session.0;
    sqlx::query(
        "UPDATE agent_sessions SET opened_at = timestamptz 'epoch' + $2::bigint * interval '1 microsecond'
         WHERE session_id = $1",
    )
    .bind(id)
    .bind(to_bigint("opened_at", restored.opened_at_us)?)
    .execute(&mut *connection)
    .await
    .map_err(convert)?;
    let lifetimes = restored.lifetimes.iter();
    let (generations, times): (Vec<_>, Vec<_>) = lifetimes
        .map(|(write, bound_at_ms)| {
            let generation = to_bigint("generation", write.generation);
            (generation, to_bigint("bound_at", *bound_at_ms))
        })
        .unzip();
    sqlx::query(
        "UPDATE session_lifetimes AS stored
         SET bound_at = timestamptz 'epoch' + fresh.bound_at_ms * interval '1 millisecond'
         FROM unnest($2::bigint[], $3::bigint[]) AS fresh(generation, bound_at_ms)
         WHERE stored.session_id = $1 AND stored.generation = fresh.generation",
    )
    .bind(id)
    .bind(generations.into_iter().collect::<Result<Vec<i64>, _>>()?)
    .bind(times.into_iter().collect::<Result<Vec<i64>, _>>()?)
    .execute(connection)
    .await
    .map_err(convert)?;
    Ok(())
}
