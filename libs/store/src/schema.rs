//! Which migrations are embedded, and whether the database has exactly those.

use std::time::Duration;

use sqlx::PgConnection;
use sqlx::migrate::{MigrateError, Migrator};
use tokio::time::Instant;

use crate::error::{During, convert};
use crate::options::SessionSettings;
use crate::{Error, Store};

static MIGRATOR: Migrator = sqlx::migrate!("../../migrations");

/// How long several services that start at once wait for the one that migrates.
const MIGRATION_BOUND: Duration = Duration::from_secs(60);
/// A migration may run longer than any statement of the services.
const MIGRATION_STATEMENT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
const PAUSE_BETWEEN_TRIES: Duration = Duration::from_millis(100);

const SCHEMA: During = During::Statement("schema");

/// A migration that the database says it has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Applied {
    version: i64,
    success: bool,
    checksum: Vec<u8>,
}

impl Store {
    /// Brings the schema to this build's version. Safe to call from several services at once; refuses a database that
    /// a newer build has migrated, before it touches anything.
    pub async fn migrate(&self) -> Result<(), Error> {
        self.check_migratable().await?;
        let give_up = Instant::now() + MIGRATION_BOUND;
        loop {
            match self.migrate_once().await {
                Err(Error::LockTimedOut { .. }) if Instant::now() < give_up => {
                    tokio::time::sleep(PAUSE_BETWEEN_TRIES).await;
                }
                Err(error) => return Err(error),
                Ok(()) => return self.check_schema().await,
            }
        }
    }

    /// Whether [`Store::migrate`] would do its work, or find it done. Changes nothing.
    pub async fn check_migratable(&self) -> Result<(), Error> {
        self.check_writable().await?;
        match self.check_schema().await {
            Err(Error::MigrationMissing { .. }) => self.check_may_create().await,
            checked => checked,
        }
    }

    /// Whether the database has exactly the migrations of this build.
    pub async fn check_schema(&self) -> Result<(), Error> {
        let mut connection = self.acquire().await?;
        let applied = read_applied(&mut connection).await?;
        judge(&embedded(), &applied)
    }

    async fn migrate_once(&self) -> Result<(), Error> {
        let mut connection = self.acquire().await?;
        let applied = read_applied(&mut connection).await?;
        match judge(&embedded(), &applied) {
            Ok(()) => return Ok(()),
            Err(Error::MigrationMissing { .. }) => {}
            Err(error) => return Err(error),
        }
        let settings = SessionSettings::of(&self.options);
        let patient = settings
            .clone()
            .with_statement_timeout(MIGRATION_STATEMENT_TIMEOUT);
        patient
            .apply(&mut connection)
            .await
            .map_err(|error| convert(SCHEMA, error))?;
        // `Migrator::run` can't be called from a spawned task with a connection of our own: its future is not `Send`
        // for every lifetime. This is what it calls.
        let migrated = MIGRATOR.run_direct(None, &mut *connection, false).await;
        let Err(error) = migrated else {
            return settings
                .apply(&mut connection)
                .await
                .map_err(|error| convert(SCHEMA, error));
        };
        // The migrator keeps its advisory lock when it fails: it must not go back to the pool with the connection.
        if let Err(error) = connection.close().await {
            tracing::debug!(%error, "closing the migrating connection failed");
        }
        Err(convert_migration(error))
    }
}

fn embedded() -> Vec<(i64, &'static [u8])> {
    MIGRATOR
        .iter()
        .map(|migration| (migration.version, &*migration.checksum))
        .collect()
}

async fn read_applied(connection: &mut PgConnection) -> Result<Vec<Applied>, Error> {
    let exists: bool = sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL")
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| convert(SCHEMA, error))?;
    if !exists {
        return Ok(Vec::new());
    }
    let rows: Vec<(i64, bool, Vec<u8>)> =
        sqlx::query_as("SELECT version, success, checksum FROM _sqlx_migrations ORDER BY version")
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| convert(SCHEMA, error))?;
    Ok(rows
        .into_iter()
        .map(|(version, success, checksum)| Applied {
            version,
            success,
            checksum,
        })
        .collect())
}

/// Compares the embedded migrations (in order) with the applied ones (in order). The first thing that is wrong is the
/// one that says most: a newer schema before anything else.
fn judge(embedded: &[(i64, &[u8])], applied: &[Applied]) -> Result<(), Error> {
    if let Some(missing) = first_gap(embedded.iter().map(|(version, _)| *version)) {
        return Err(Error::SchemaGap { missing });
    }
    let known = embedded.last().map_or(0, |(version, _)| *version);
    let found = applied.last().map_or(0, |migration| migration.version);
    if found > known {
        return Err(Error::SchemaNewer { found, known });
    }
    if let Some(dirty) = applied.iter().find(|migration| !migration.success) {
        return Err(Error::MigrationDirty {
            version: dirty.version,
        });
    }
    if let Some(missing) = first_gap(applied.iter().map(|migration| migration.version)) {
        return Err(Error::SchemaGap { missing });
    }
    // Both run 1, 2, 3 ... from here on.
    for ((version, checksum), migration) in embedded.iter().zip(applied) {
        if *checksum != migration.checksum {
            return Err(Error::MigrationChanged { version: *version });
        }
    }
    match embedded.get(applied.len()) {
        Some((version, _)) => Err(Error::MigrationMissing { version: *version }),
        None => Ok(()),
    }
}

/// The first number that is missing from 1, 2, 3 ...
fn first_gap(versions: impl Iterator<Item = i64>) -> Option<i64> {
    versions
        .zip(1..)
        .find(|(version, expected)| version != expected)
        .map(|(_, expected)| expected)
}

fn convert_migration(error: MigrateError) -> Error {
    match error {
        MigrateError::Execute(source) => convert(SCHEMA, source),
        MigrateError::ExecuteMigration(source, version) => match convert(SCHEMA, source) {
            Error::Database(source) => Error::MigrationFailed { version, source },
            other => other,
        },
        // A newer build has migrated between our look and the lock.
        MigrateError::VersionMissing(found) => Error::SchemaNewer {
            found,
            known: MIGRATOR.iter().last().map_or(0, |migration| migration.version),
        },
        MigrateError::VersionMismatch(version) => Error::MigrationChanged { version },
        MigrateError::Dirty(version) => Error::MigrationDirty { version },
        other => Error::Bug(format!("migration: {other}")),
    }
}

#[cfg(test)]
mod tests;
