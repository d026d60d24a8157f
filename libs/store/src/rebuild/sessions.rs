//! A session as a state of the archive has it, and what is known of an erased one.

use sqlx::PgConnection;
use uuid::Uuid;
use wakelog_model::SessionId;

use super::rows::RestoredSession;
use super::standing::{REBUILD, end};
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
    /// Nothing happens to one that has a row. [`Error::RebuildFenced`] also once the states are marked as loaded.
    pub async fn restore_session(&self, epoch: i64, restored: &RestoredSession) -> Result<(), Error> {
        let mut transaction = self.restoring(epoch).await?;
        let stored = restore(&mut transaction, restored).await;
        end(transaction, stored).await
    }

    /// Stores that the session is erased: an owner whom nobody is, and nothing else. Nothing happens to one that has a row.
    /// [`Error::RebuildFenced`].
    pub async fn restore_erased(&self, epoch: i64, session: SessionId, partition: i32) -> Result<(), Error> {
        let mut transaction = self.restoring(epoch).await?;
        let restored = sqlx::query(
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
        .execute(&mut *transaction)
        .await;
        end(
            transaction,
            restored.map_err(|error| convert(CHANGE, error)).map(drop),
        )
        .await
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
    let is_there: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT FROM agent_sessions WHERE session_id = $1)")
            .bind(id)
            .fetch_one(&mut *connection)
            .await
            .map_err(convert)?;
    if is_there {
        return Ok(());
    }
    upsert_sessions(connection, std::slice::from_ref(&restored.session)).await?;
    upsert_lifetimes(connection, &restored.lifetimes).await?;
    write_access(connection, &restored.access).await?;
    // The row's version is this transaction's: what is folded later changes it. When the state was taken is not known, and what
    // is folded after it may be as old: then the next state is due at once.
    sqlx::query(
        "INSERT INTO session_archive_snapshots
                (session_id, incarnation, next_offset, last_entry_seq, row_version, taken_at)
         SELECT session_id, $2, $3, last_entry_seq, xmin::text, timestamptz 'epoch'
         FROM agent_sessions WHERE session_id = $1",
    )
    .bind(id)
    .bind(to_integer("incarnation", restored.incarnation)?)
    .bind(to_bigint("next_offset", restored.next_offset)?)
    .execute(connection)
    .await
    .map_err(convert)?;
    Ok(())
}
