//! Who may connect to a store that is being built again, and when a rebuild may begin.
//!
//! A half-built store looks like a whole one, so nobody uses it before it is finished, and nobody uses it already when its
//! building begins. Each connection of a guarded store takes a shared lock for its life and then looks whether a rebuild is
//! unfinished; a rebuild takes the same lock for itself before it begins. A pooler that hands one server connection to several
//! clients would carry the lock away from whom it is for: the claims of partitions look once more by themselves.

use sqlx::PgConnection;
use tokio::sync::watch;

use crate::Error;
use crate::error::is_of_rights;

/// Names the lock among a database's advisory locks: "wakelog" and a number.
pub(crate) const LOCK: i64 = 0x7761_6b65_6c6f_6701;

/// Why a connection was turned away.
#[derive(Debug, Clone)]
pub(crate) enum TurnedAway {
    /// The store is being built.
    BeingBuilt,
    /// Its user may not even look.
    NotAllowed(String),
}

impl From<TurnedAway> for Error {
    fn from(why: TurnedAway) -> Self {
        match why {
            TurnedAway::BeingBuilt => Self::BeingBuilt,
            TurnedAway::NotAllowed(reason) => Self::NotAllowed { reason },
        }
    }
}

/// Whether the connections of a store pass, and whether one was turned away.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    is_guarded: bool,
    /// Why the last connection was turned away that was.
    refusals: watch::Sender<TurnedAway>,
}

impl Gate {
    pub(crate) fn new(is_guarded: bool) -> Self {
        Self {
            is_guarded,
            refusals: watch::Sender::new(TurnedAway::BeingBuilt),
        }
    }

    /// Hears of connections that are turned away from now on.
    pub(crate) fn refusals(&self) -> watch::Receiver<TurnedAway> {
        self.refusals.subscribe()
    }

    /// Asked of each connection once it is made.
    pub(crate) async fn pass(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        match self.may_pass(connection).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.refusals.send_replace(TurnedAway::BeingBuilt);
                Err(sqlx::Error::Protocol(
                    "the database is being built by a replay".to_owned(),
                ))
            }
            Err(error) => {
                // The pool would try again for as long as it may, and then only say that the time is over.
                if let Some(refused) = error.as_database_error().filter(|_| is_of_rights(&error)) {
                    let reason = refused.message().to_owned();
                    self.refusals.send_replace(TurnedAway::NotAllowed(reason));
                }
                Err(error)
            }
        }
    }

    async fn may_pass(&self, connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
        // Before the lock as well: whoever waits for a rebuild's end and tries again and again must not keep it from going on.
        Ok(!self.is_guarded
            || (!is_unfinished(connection).await?
                && lock_shared(connection).await?
                && !is_unfinished(connection).await?))
    }
}

async fn lock_shared(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock_shared($1)")
        .bind(LOCK)
        .fetch_one(connection)
        .await
}

/// Also answers for a database that has no schema yet, or an older one.
async fn is_unfinished(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let may_be: bool = sqlx::query_scalar("SELECT to_regclass('store_rebuilds') IS NOT NULL")
        .fetch_one(&mut *connection)
        .await?;
    if !may_be {
        return Ok(false);
    }
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM store_rebuilds WHERE finished_at IS NULL)")
        .fetch_one(connection)
        .await
}
