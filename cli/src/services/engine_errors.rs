//! What is said of a database or a log that is away or wrong, and what to do about it.

use super::topic;
use crate::exit::{Error, with_sources};

/// What to do about a database that has no tables.
const NEW_DATABASE_HINT: &str = "run `wakelog migrate`; if this database takes the place of one that was lost, `wakelog replay --into` it instead";

/// The store's error, with what to do about it.
pub(crate) fn store_error(error: wakelog_store::Error) -> Error {
    use wakelog_store::Error as Store;
    if matches!(error, Store::Configuration { .. }) {
        return Error::usage(with_sources(&error)).or_hint("--database-url is postgres://user@host/database");
    }
    let hint = match &error {
        Store::Unreachable { .. } | Store::PoolTimedOut => {
            "is the database running, and is --database-url right?"
        }
        Store::ConnectionRefused { .. } => {
            "it runs: are user, password and database of --database-url right? Wakelog creates no database, `createdb` does"
        }
        Store::Unusable { .. } => {
            "--database-url must name PostgreSQL 15 or newer: is its port right? An older server has to be upgraded"
        }
        Store::TlsWanted { .. } => {
            "Wakelog speaks no TLS to a database: allow this user in pg_hba.conf with a line `host`, or put a proxy that \
             speaks TLS on this machine"
        }
        Store::TlsNotBuilt { .. } => {
            "take sslmode out of --database-url (and PGSSLMODE out of the environment), or name a proxy on this machine \
             that speaks TLS to the database"
        }
        Store::NotAllowed { .. } => {
            "grant it to the user of --database-url, or let the user who ran `wakelog migrate` own the tables and run the services"
        }
        Store::ReadOnly { .. } => {
            "name the primary server in --database-url, or take default_transaction_read_only off"
        }
        Store::SchemaNewer { .. } => "a newer wakelog migrated this database: use that version",
        Store::SchemaGap { .. } => {
            "somebody took a row out of _sqlx_migrations: put it back, restore a backup, or build a new database with `wakelog \
             replay`; `wakelog migrate` does not guess"
        }
        Store::MigrationChanged { .. } => {
            "another program, or a changed build of this one, migrated this database: use that build, or build a new database \
             with `wakelog replay`"
        }
        Store::MigrationDirty { .. } => {
            "a `wakelog migrate` was cut off half-way: restore a backup, or build a new database with `wakelog replay`"
        }
        Store::MigrationMissing { version: 1 } | Store::NoTables => NEW_DATABASE_HINT,
        Store::MigrationMissing { .. } => "run `wakelog migrate`",
        Store::BeingBuilt => topic::UNFINISHED_HINT,
        _ => "`wakelog doctor` looks at every dependency",
    };
    Error::dependency(with_sources(&error)).or_hint(hint)
}

/// The log's error, with what to do about it.
pub(crate) fn stream_error(error: wakelog_stream::Error) -> Error {
    use wakelog_stream::Error as Stream;
    if matches!(error, Stream::Config { .. }) {
        return Error::usage(with_sources(&error))
            .or_hint("it is a setting of [kafka] in the configuration file");
    }
    let hint = match &error {
        Stream::Unreachable { .. } => "is the broker running, and is --brokers right?",
        Stream::Refused { .. } => {
            "are security.protocol and sasl.* of [kafka] in the configuration file those that the broker wants?"
        }
        Stream::Unwelcome { .. } => {
            "it may want authentication: set security.protocol = \"sasl_plaintext\" and sasl.* in [kafka] of the configuration \
             file; or the addresses that it advertises can't be reached from here"
        }
        Stream::NoBroker { .. } => {
            "--brokers must name Kafka brokers: is the port right? Wakelog speaks no TLS to brokers; they need a listener without"
        }
        Stream::BrokerTooOld { .. } => "upgrade the brokers, or name others with --brokers",
        Stream::TlsNotBuilt { .. } => {
            "use \"plaintext\" or \"sasl_plaintext\" in [kafka] of the configuration file, with a listener without TLS or a \
             proxy on this machine that speaks it"
        }
        Stream::NoTopic { .. } => {
            "is --topic right? The first service that starts creates a topic; one that has gone is not made again"
        }
        Stream::TooFewBrokers { .. } => "--replication is larger than the number of brokers",
        _ => "`wakelog doctor` looks at every dependency",
    };
    Error::dependency(with_sources(&error)).or_hint(hint)
}
