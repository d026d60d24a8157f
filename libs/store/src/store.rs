//! The handle, and taking a connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection, PgPool, Postgres, Transaction};
use tokio::time::timeout;

use crate::error::{During, connection_error, convert};
use crate::gate::Gate;
use crate::options::{Options, SessionSettings};
use crate::{Effect, Error};

/// How long to ask why the database can't be reached, once it is known that it can't.
const DIAGNOSIS_BOUND: Duration = Duration::from_secs(2);

/// How long to ask whether anything listens there at all.
const LISTENING_BOUND: Duration = Duration::from_secs(1);

/// The oldest server that has what is needed, as a server says its version.
const OLDEST_SERVER: u32 = 15 * VERSION_UNIT;
const VERSION_UNIT: u32 = 10_000;

/// The hot tail. Cheap to clone; all clones share one pool.
#[derive(Clone)]
pub struct Store {
    pub(crate) pool: PgPool,
    pub(crate) options: Arc<Options>,
    gate: Gate,
}

impl Store {
    /// Connects, within the acquire time-out and a little.
    pub async fn connect(options: Options) -> Result<Self, Error> {
        let gate = Gate::new(options.guarded);
        let store = Self {
            pool: options.pool(&gate)?,
            options: Arc::new(options),
            gate,
        };
        match store.try_out().await {
            Ok(()) => Ok(store),
            Err(error) => {
                store.close().await;
                let place = store.options.place()?;
                Err(store.why_unreachable(error).await.at(&place))
            }
        }
    }

    /// Whether there is a connection, to a server that has what is needed.
    async fn try_out(&self) -> Result<(), Error> {
        if self.options.wants_tls()? {
            let place = self.options.place()?;
            return Err(Error::TlsNotBuilt { place });
        }
        let connection = self.acquire().await?;
        match connection.server_version_num() {
            Some(found) if found < OLDEST_SERVER => Err(Error::Unusable {
                reason: format!(
                    "it is PostgreSQL {}, and {} or newer is needed",
                    found / VERSION_UNIT,
                    OLDEST_SERVER / VERSION_UNIT
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Waits for the connections in use, within the acquire time-out, and closes the pool.
    pub async fn close(&self) {
        if timeout(self.options.acquire_timeout, self.pool.close())
            .await
            .is_err()
        {
            tracing::warn!("store closed while connections were in use");
        }
    }

    /// The server's version, as it says it.
    pub async fn server_version(&self) -> Result<String, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query_scalar("SELECT current_setting('server_version')")
            .fetch_one(&mut *connection)
            .await
            .map_err(|error| convert(During::Statement("server version"), error))
    }

    /// A connection of the pool. Every statement takes its own: an error here means that nothing was sent.
    pub(crate) async fn acquire(&self) -> Result<PoolConnection<Postgres>, Error> {
        let mut refusals = self.gate.refusals();
        // The pool would try again until the time is over.
        let acquired = tokio::select! {
            acquired = self.pool.acquire() => acquired,
            Ok(()) = refusals.changed() => return Err(refusals.borrow().clone().into()),
        };
        acquired.map_err(|error| {
            let error = convert(During::Acquire, error);
            debug_assert_eq!(error.effect(), Effect::CertainlyNot);
            error
        })
    }

    /// Begins in a task of its own: a caller that is cancelled while BEGIN is on its way would give a connection with
    /// an open transaction back to the pool (sqlx issue 4385). The task goes on, and drops what nobody takes.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>, Error> {
        let store = self.clone();
        let beginning = async move {
            let connection = store.acquire().await?;
            // What `Pool::begin` does, which takes its connection without asking the gate.
            Transaction::begin(connection, None)
                .await
                .map_err(|error| convert(During::Acquire, error))
        };
        match tokio::spawn(beginning).await {
            Ok(begun) => begun,
            Err(error) => Err(Error::Unreachable {
                reason: format!("the task that begins a transaction ended: {error}"),
            }),
        }
    }

    /// A connection of its own, for what must not wait for the pool. Bounded like taking one from it.
    pub(crate) async fn connect_outside_pool(&self) -> Result<PgConnection, Error> {
        let options = self.options.connect_options()?;
        let settings = SessionSettings::of(&self.options);
        let connecting = async {
            let mut connection = PgConnection::connect_with(&options).await?;
            settings.apply(&mut connection).await?;
            Ok(connection)
        };
        match timeout(self.options.acquire_timeout, connecting).await {
            Ok(connected) => connected.map_err(|error| convert(During::Acquire, error)),
            Err(_) => Err(Error::PoolTimedOut),
        }
    }

    /// The pool waits for a server that refuses connections and then only says that the time is over.
    async fn why_unreachable(&self, error: Error) -> Error {
        if !matches!(error, Error::PoolTimedOut) {
            return error;
        }
        let options = match self.options.connect_options() {
            Ok(options) => options,
            Err(error) => return error,
        };
        let reason = match timeout(DIAGNOSIS_BOUND, PgConnection::connect_with(&options)).await {
            Ok(Err(error)) => return connection_error(&error),
            Ok(Ok(connection)) => {
                if let Err(error) = connection.close().await {
                    tracing::debug!(%error, "closing a diagnostic connection failed");
                }
                "a connection came only after the acquire time-out".to_owned()
            }
            Err(_) if is_listened_at(&options).await => {
                "something listens there and gives no answer as PostgreSQL does".to_owned()
            }
            Err(_) => "no answer".to_owned(),
        };
        Error::Unreachable { reason }
    }
}

/// Whether a connection can be made, whatever is at its other end.
async fn is_listened_at(options: &PgConnectOptions) -> bool {
    let address = (options.get_host(), options.get_port());
    let connecting = timeout(LISTENING_BOUND, tokio::net::TcpStream::connect(address));
    options.get_socket().is_none() && matches!(connecting.await, Ok(Ok(_)))
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Store")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Rolls back for a caller that has something better to report than a failed rollback.
pub(crate) async fn give_up(transaction: Transaction<'_, Postgres>) {
    if let Err(error) = transaction.rollback().await {
        tracing::debug!(%error, "rollback failed, the connection is dropped");
    }
}
