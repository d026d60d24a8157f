//! How the pool is built, and the bounds of every wait.

use std::fmt;
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::{ConnectOptions as _, PgConnection, PgPool};

use crate::Error;
use crate::gate::Gate;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Where the database is, and how long to wait for it.
#[derive(Clone)]
pub struct Options {
    /// `postgres://user:password@host:port/database`. Holds a secret: it is in no log and in no error.
    pub url: String,
    /// Connections of the pool, at most.
    pub max_connections: u32,
    /// How long to wait for a free connection, including making one.
    pub acquire_timeout: Duration,
    /// How long a statement waits for a row that another transaction holds.
    pub lock_timeout: Duration,
    /// How long a transaction may do nothing before the server ends it: a frozen owner lets go.
    pub idle_in_transaction_timeout: Duration,
    /// How long a statement may run.
    pub statement_timeout: Duration,
    /// How old a connection may get; `None`: any age.
    pub max_lifetime: Option<Duration>,
    /// What the server shows as the connection's name.
    pub application_name: String,
    /// Whether to keep out of a store that a replay has not finished, and to keep a replay from beginning meanwhile. Off for the
    /// replay itself, and for who only looks.
    pub guarded: bool,
}

impl Options {
    /// A pool for a server: eight connections.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            max_connections: 8,
            acquire_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(2),
            idle_in_transaction_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            max_lifetime: Some(Duration::from_secs(30 * 60)),
            application_name: "wakelog".to_owned(),
            guarded: true,
        }
    }

    /// The same for whoever builds the store again, or only looks how it is.
    pub fn unguarded(url: impl Into<String>) -> Self {
        Self {
            guarded: false,
            ..Self::new(url)
        }
    }

    /// A pool for an embedded server that takes one connection at a time: it keeps that one.
    pub fn single_connection(url: impl Into<String>) -> Self {
        Self {
            max_connections: 1,
            max_lifetime: None,
            ..Self::new(url)
        }
    }

    pub(crate) fn connect_options(&self) -> Result<PgConnectOptions, Error> {
        // sqlx takes any scheme for its own.
        if !SCHEMES.iter().any(|scheme| self.url.starts_with(scheme)) {
            return Err(Error::Configuration {
                reason: format!(
                    "the database URL must start with {} or {}",
                    SCHEMES[0], SCHEMES[1]
                ),
            });
        }
        let options = PgConnectOptions::from_str(&self.url).map_err(|error| Error::Configuration {
            reason: error.to_string(),
        })?;
        // The server can log statements with their times; this process has metrics.
        Ok(options.disable_statement_logging())
    }

    /// Which database it is, without secrets.
    pub(crate) fn place(&self) -> Result<String, Error> {
        let options = self.connect_options()?;
        let database = options.get_database().unwrap_or(options.get_username());
        Ok(match options.get_socket() {
            Some(socket) => format!("{} of {}", database, socket.display()),
            None => format!("{}:{}/{database}", options.get_host(), options.get_port()),
        })
    }

    /// Whether the connection must be encrypted, which sqlx is built without.
    pub(crate) fn wants_tls(&self) -> Result<bool, Error> {
        let mode = self.connect_options()?.get_ssl_mode();
        Ok(matches!(
            mode,
            PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull
        ))
    }

    pub(crate) fn pool(&self, gate: &Gate) -> Result<PgPool, Error> {
        if self.max_connections == 0 {
            return Err(Error::Configuration {
                reason: "max_connections is 0".to_owned(),
            });
        }
        let settings = SessionSettings::of(self);
        let gate = gate.clone();
        let idle_timeout = self.max_lifetime.map(|lifetime| lifetime / 3);
        let pool = PgPoolOptions::new()
            .max_connections(self.max_connections)
            .acquire_timeout(self.acquire_timeout)
            .max_lifetime(self.max_lifetime)
            .idle_timeout(idle_timeout)
            // A connection that died while it was idle would turn a write into an unknown effect; a ping is cheap.
            .test_before_acquire(true)
            .after_connect(move |connection, _| {
                let (settings, gate) = (settings.clone(), gate.clone());
                Box::pin(async move {
                    settings.apply(connection).await?;
                    gate.pass(connection).await
                })
            })
            .connect_lazy_with(self.connect_options()?);
        Ok(pool)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Options")
            .field("url", &"(hidden)")
            .field("max_connections", &self.max_connections)
            .field("acquire_timeout", &self.acquire_timeout)
            .field("lock_timeout", &self.lock_timeout)
            .field("idle_in_transaction_timeout", &self.idle_in_transaction_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("max_lifetime", &self.max_lifetime)
            .field("application_name", &self.application_name)
            .field("guarded", &self.guarded)
            .finish()
    }
}

/// What every connection is set to once it is made. Not as startup options: an embedded server and poolers refuse
/// those. `synchronous_commit` stays what the server says.
#[derive(Debug, Clone)]
pub(crate) struct SessionSettings {
    lock_timeout: String,
    idle_in_transaction_timeout: String,
    statement_timeout: String,
    application_name: String,
}

impl SessionSettings {
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            lock_timeout: milliseconds(options.lock_timeout),
            idle_in_transaction_timeout: milliseconds(options.idle_in_transaction_timeout),
            statement_timeout: milliseconds(options.statement_timeout),
            application_name: options.application_name.clone(),
        }
    }

    /// The same with another bound of a statement.
    pub(crate) fn with_statement_timeout(mut self, bound: Duration) -> Self {
        self.statement_timeout = milliseconds(bound);
        self
    }

    pub(crate) async fn apply(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        sqlx::query(
            "SELECT set_config('lock_timeout', $1, false),
                    set_config('idle_in_transaction_session_timeout', $2, false),
                    set_config('statement_timeout', $3, false),
                    set_config('application_name', $4, false)",
        )
        .bind(&self.lock_timeout)
        .bind(&self.idle_in_transaction_timeout)
        .bind(&self.statement_timeout)
        .bind(&self.application_name)
        .execute(connection)
        .await?;
        Ok(())
    }
}

/// 0 would mean "no bound" to the server.
fn milliseconds(bound: Duration) -> String {
    format!("{}ms", bound.as_millis().clamp(1, i32::MAX as u128))
}
