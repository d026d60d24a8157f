//! What can go wrong, and whether the effect can have happened.
//!
//! The rule of [`Error::effect`]: an effect is ruled out only for the cases that are listed here (nothing was sent, or
//! the server said that it rolled back). Everything else is unknown, and the caller has to look before it acts.

mod connection;
mod conversion;

pub(crate) use connection::connection_error;
pub(crate) use conversion::{During, convert, is_of_rights};

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
    /// What was reached is no PostgreSQL, or one that this build does not know.
    #[error("the database can't be used: {reason}")]
    Unusable {
        /// What is wrong with it.
        reason: String,
    },
    /// The server has no place for connections without TLS, which this build does not speak.
    #[error("the database refuses connections without TLS: {reason}")]
    TlsWanted {
        /// What the server said.
        reason: String,
    },
    /// The options ask for TLS, which this build does not speak.
    #[error("TLS is asked for, and this build does not speak it to a database: {place}")]
    TlsNotBuilt {
        /// Which database.
        place: String,
    },
    /// The user may not do what this program does.
    #[error("the database does not allow it: {reason}")]
    NotAllowed {
        /// What is not allowed.
        reason: String,
    },
    /// The server takes no writes: it is a standby, or was told so.
    #[error("the database takes no writes: {reason}")]
    ReadOnly {
        /// Why it does not.
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
            Self::Database(error) if !conversion::is_rolled_back(error) => Effect::Unknown,
            // The migrations before it are applied, and whether it is depends on how it failed.
            Self::MigrationFailed { .. } => Effect::Unknown,
            Self::Database(_)
            | Self::Configuration { .. }
            | Self::Unreachable { .. }
            | Self::ConnectionRefused { .. }
            | Self::Unusable { .. }
            | Self::TlsWanted { .. }
            | Self::TlsNotBuilt { .. }
            | Self::NotAllowed { .. }
            | Self::ReadOnly { .. }
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

#[cfg(test)]
mod tests;
