//! What can go wrong, and whether the effect can have happened.
//!
//! The rule of [`Error::effect`]: an effect is ruled out only for the cases that are listed here (nothing was sent, or
//! the server said that it rolled back). Everything else is unknown, and the caller has to look before it acts.

use sqlx::error::DatabaseError;

/// `unique_violation`, `check_violation` and their like.
const CLASS_INTEGRITY_VIOLATION: &str = "23";
/// Values that the column can't take, such as a NUL in text.
const CLASS_DATA_EXCEPTION: &str = "22";
/// `serialization_failure`, `deadlock_detected`: the server rolled back.
const CLASS_TRANSACTION_ROLLBACK: &str = "40";
/// Wrong user or password.
const CLASS_INVALID_AUTHORIZATION: &str = "28";
/// No such database.
const CLASS_INVALID_CATALOG: &str = "3D";
/// No memory, no disk space, too many connections: the statement failed as a whole.
const CLASS_INSUFFICIENT_RESOURCES: &str = "53";
/// Unknown table, missing privilege: the statement failed as a whole.
const CLASS_SYNTAX_OR_ACCESS: &str = "42";
/// Read-only server, failed transaction: the statement failed as a whole.
const CLASS_INVALID_TRANSACTION_STATE: &str = "25";
/// A row came twice in one upsert.
const CARDINALITY_VIOLATION: &str = "21000";
/// The one member of class 40 that does not say what happened.
const STATEMENT_COMPLETION_UNKNOWN: &str = "40003";
/// No such table: the statement failed as a whole.
const UNDEFINED_TABLE: &str = "42P01";
/// `lock_timeout` passed.
const LOCK_NOT_AVAILABLE: &str = "55P03";
/// `statement_timeout` passed.
const QUERY_CANCELED: &str = "57014";
/// The server starts or stops and takes no connection.
const CANNOT_CONNECT_NOW: &str = "57P03";

/// Whether the effect of a failed call can have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It has not happened and will not happen.
    CertainlyNot,
    /// It may have happened, or may still happen.
    Unknown,
}

/// What can go wrong in the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The options can't be used.
    #[error("the store's options can't be used: {reason}")]
    Configuration {
        /// What is wrong with them; never the URL itself.
        reason: String,
    },
    /// No connection could be made.
    #[error("the database can't be reached: {reason}")]
    Unreachable {
        /// What the last attempt met.
        reason: String,
    },
    /// The server answers and takes no connection with these options: no such database, wrong user or password.
    #[error("the database refuses the connection: {reason}")]
    ConnectionRefused {
        /// What the server said.
        reason: String,
    },
    /// No connection was free within the time, or none could be made.
    #[error("no database connection within the time allowed")]
    PoolTimedOut,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Another owner has claimed the partition since.
    #[error("partition {partition} of {topic} is fenced: epoch {held} is held, {current} is current")]
    Fenced {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The epoch that the caller has.
        held: i64,
        /// The epoch that is current; 0 if nobody ever claimed the partition.
        current: i64,
    },
    /// The partition is folded up to another offset than the caller thinks.
    #[error("partition {partition} of {topic} goes on at offset {current}, the batch starts at {held}")]
    OffsetMismatch {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The offset that the caller goes on from.
        held: i64,
        /// The offset that the store goes on from.
        current: i64,
    },
    /// Somebody held a row or the schema lock for longer than the lock time-out.
    #[error("{what} stayed locked for longer than the lock time-out")]
    LockTimedOut {
        /// What was locked.
        what: &'static str,
    },
    /// COMMIT was sent and has no known answer: read the progress before anything else.
    #[error("it is not known whether the batch was committed: {reason}")]
    CommitUnknown {
        /// What came instead of an answer.
        reason: String,
    },
    /// The batch's transaction failed before COMMIT was sent; nothing of it is stored.
    #[error("the batch was rolled back: {0}")]
    BatchAborted(#[source] sqlx::Error),
    /// COMMIT of a change of the archive's tables was sent and has no known answer: look whether it is there.
    #[error("it is not known whether the {what} was committed: {reason}")]
    ArchiveCommitUnknown {
        /// What was to be committed, such as a flush.
        what: &'static str,
        /// What came instead of an answer.
        reason: String,
    },
    /// A transaction of the archive failed before COMMIT was sent, or was rolled back by it; nothing of it is stored.
    #[error("the {what} was rolled back: {source}")]
    ArchiveAborted {
        /// What was rolled back, such as a flush.
        what: &'static str,
        /// Why.
        source: sqlx::Error,
    },
    /// The database has a migration that this build does not know.
    #[error("the schema is at version {found}, this build knows {known}")]
    SchemaNewer {
        /// The newest version in the database.
        found: i64,
        /// The newest version of this build.
        known: i64,
    },
    /// The numbers of the migrations have a hole.
    #[error("migration {missing} is missing below a newer one")]
    SchemaGap {
        /// The first number that is missing.
        missing: i64,
    },
    /// A migration of this build is not applied.
    #[error("migration {version} is not applied")]
    MigrationMissing {
        /// The first one that is not.
        version: i64,
    },
    /// A migration was changed after it was applied.
    #[error("migration {version} was applied with other content")]
    MigrationChanged {
        /// Its number.
        version: i64,
    },
    /// A migration was left half applied.
    #[error("migration {version} is half applied")]
    MigrationDirty {
        /// Its number.
        version: i64,
    },
    /// A migration failed; what came before it is applied.
    #[error("migration {version} failed: {source}")]
    MigrationFailed {
        /// Its number.
        version: i64,
        /// Why.
        source: sqlx::Error,
    },
    /// A table is missing: the database was made anew, or is another one.
    #[error("the database lacks tables of this program: it is a new one, or another one")]
    NoTables,
    /// A rebuild was to begin in a store that holds something. Nothing was written.
    #[error("the database is not empty")]
    NotEmpty,
    /// A rebuild was to begin in a store that one has built. Nothing was written.
    #[error("the database was built from topic {topic} by a replay that has finished: services may use it")]
    AlreadyBuilt {
        /// The topic.
        topic: String,
    },
    /// A rebuild was to begin, or to go on, in a store that is in use. Nothing was written.
    #[error("the database is in use by {connections} connections")]
    InUse {
        /// Connections of services that hold the store's lock.
        connections: i64,
    },
    /// Another process is building the store.
    #[error("another replay is running on this database")]
    RebuildRunning,
    /// Another process has gone on with the building since. Nothing was written.
    #[error("another replay has gone on with this one's work")]
    RebuildFenced,
    /// The store is being built, or a rebuild of it was left unfinished: nobody may use it.
    #[error("the database is being built by a replay that has not finished")]
    BeingBuilt,
    /// A number of the protocol is too large for the database.
    #[error("{what} {value} does not fit into the database")]
    OutOfRange {
        /// What the number is.
        what: &'static str,
        /// The number.
        value: u64,
    },
    /// A failure that a test asked for.
    #[error("failpoint {name}")]
    Failpoint {
        /// The failpoint.
        name: &'static str,
    },
    /// The database holds or refused what it can't by this crate's rules. Nothing was written.
    #[error("this is a bug: {0}")]
    Bug(String),
    /// Any other error of the database or of the connection to it.
    #[error("database error: {0}")]
    Database(#[source] sqlx::Error),
}

impl Error {
    /// Whether the effect of the call can have happened.
    pub fn effect(&self) -> Effect {
        match self {
            Self::CommitUnknown { .. } | Self::ArchiveCommitUnknown { .. } => Effect::Unknown,
            Self::Database(error) if !is_rolled_back(error) => Effect::Unknown,
            // The migrations before it are applied, and whether it is depends on how it failed.
            Self::MigrationFailed { .. } => Effect::Unknown,
            Self::Database(_)
            | Self::Configuration { .. }
            | Self::Unreachable { .. }
            | Self::ConnectionRefused { .. }
            | Self::PoolTimedOut
            | Self::Closed
            | Self::Fenced { .. }
            | Self::OffsetMismatch { .. }
            | Self::LockTimedOut { .. }
            | Self::BatchAborted(_)
            | Self::ArchiveAborted { .. }
            | Self::SchemaNewer { .. }
            | Self::SchemaGap { .. }
            | Self::MigrationMissing { .. }
            | Self::MigrationChanged { .. }
            | Self::MigrationDirty { .. }
            | Self::NoTables
            | Self::NotEmpty
            | Self::AlreadyBuilt { .. }
            | Self::InUse { .. }
            | Self::RebuildRunning
            | Self::RebuildFenced
            | Self::BeingBuilt
            | Self::OutOfRange { .. }
            | Self::Failpoint { .. }
            | Self::Bug(_) => Effect::CertainlyNot,
        }
    }
}

/// Where an error of sqlx comes from, which decides what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum During {
    /// Taking a connection: no statement was sent.
    Acquire,
    /// A statement that is its own transaction.
    Statement(&'static str),
    /// A statement of a batch: COMMIT was not sent.
    Batch(&'static str),
    /// COMMIT of a batch.
    Commit,
    /// A statement of a transaction of the archive, named by the transaction: COMMIT was not sent.
    Archive(&'static str),
    /// COMMIT of a transaction of the archive.
    ArchiveCommit(&'static str),
}

/// The one place where an error of sqlx becomes one of ours.
pub(crate) fn convert(during: During, error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::PoolTimedOut => return Error::PoolTimedOut,
        sqlx::Error::PoolClosed => return Error::Closed,
        _ => {}
    }
    match during {
        During::Acquire => connection_error(&error),
        During::Commit if is_rolled_back_at_commit(&error) => Error::BatchAborted(error),
        During::Commit => Error::CommitUnknown {
            reason: error.to_string(),
        },
        During::ArchiveCommit(what) if is_rolled_back_at_commit(&error) => {
            Error::ArchiveAborted { what, source: error }
        }
        During::ArchiveCommit(what) => Error::ArchiveCommitUnknown {
            what,
            reason: error.to_string(),
        },
        During::Archive(what) => {
            convert_statement(what, error).unwrap_or_else(|source| Error::ArchiveAborted { what, source })
        }
        During::Statement(what) => convert_statement(what, error).unwrap_or_else(Error::Database),
        During::Batch(what) => convert_statement(what, error).unwrap_or_else(Error::BatchAborted),
    }
}

/// Why there is no connection. A server that is starting or has none left is away; one that knows neither the user nor the
/// database will not know them later.
pub(crate) fn connection_error(error: &sqlx::Error) -> Error {
    let sqlx::Error::Database(refused) = error else {
        return Error::Unreachable {
            reason: error.to_string(),
        };
    };
    // Without the place in the server's source, which sqlx adds.
    let reason = refused.message().to_owned();
    let code = sqlstate(refused.as_ref());
    match code.starts_with(CLASS_INVALID_AUTHORIZATION) || code.starts_with(CLASS_INVALID_CATALOG) {
        true => Error::ConnectionRefused { reason },
        false => Error::Unreachable { reason },
    }
}

fn convert_statement(what: &'static str, error: sqlx::Error) -> Result<Error, sqlx::Error> {
    let refused = match &error {
        sqlx::Error::Database(refused) => refused,
        sqlx::Error::Encode(_)
        | sqlx::Error::Decode(_)
        | sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnIndexOutOfBounds { .. }
        | sqlx::Error::TypeNotFound { .. }
        | sqlx::Error::RowNotFound => return Ok(Error::Bug(format!("{what}: {error}"))),
        _ => return Err(error),
    };
    let code = sqlstate(refused.as_ref());
    if code == UNDEFINED_TABLE {
        return Ok(Error::NoTables);
    }
    if code == LOCK_NOT_AVAILABLE {
        return Ok(Error::LockTimedOut { what });
    }
    if code == CARDINALITY_VIOLATION
        || code.starts_with(CLASS_INTEGRITY_VIOLATION)
        || code.starts_with(CLASS_DATA_EXCEPTION)
    {
        // The constraint's name and not the server's message: that one may quote values.
        let rule = refused.constraint().unwrap_or("no constraint").to_owned();
        return Ok(Error::Bug(format!(
            "{what}: refused with SQLSTATE {code} by {rule}"
        )));
    }
    Err(error)
}

/// Whether the server said that a statement of its own transaction did nothing.
fn is_rolled_back(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refused) = error else {
        return false;
    };
    let code = sqlstate(refused.as_ref());
    if code == STATEMENT_COMPLETION_UNKNOWN {
        return false;
    }
    let classes = [
        CLASS_TRANSACTION_ROLLBACK,
        CLASS_INTEGRITY_VIOLATION,
        CLASS_DATA_EXCEPTION,
        CLASS_INVALID_AUTHORIZATION,
        CLASS_INVALID_CATALOG,
        CLASS_INSUFFICIENT_RESOURCES,
        CLASS_SYNTAX_OR_ACCESS,
        CLASS_INVALID_TRANSACTION_STATE,
    ];
    [
        LOCK_NOT_AVAILABLE,
        QUERY_CANCELED,
        CANNOT_CONNECT_NOW,
        CARDINALITY_VIOLATION,
    ]
    .contains(&code.as_str())
        || classes.iter().any(|class| code.starts_with(class))
}

/// Whether an answer to COMMIT is a certain rollback. Far fewer than for a statement: a time-out or a shutdown can be
/// reported after the commit was written.
fn is_rolled_back_at_commit(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refused) = error else {
        return false;
    };
    let code = sqlstate(refused.as_ref());
    code != STATEMENT_COMPLETION_UNKNOWN
        && (code.starts_with(CLASS_TRANSACTION_ROLLBACK) || code.starts_with(CLASS_INTEGRITY_VIOLATION))
}

fn sqlstate(error: &dyn DatabaseError) -> String {
    error.code().map(|code| code.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
