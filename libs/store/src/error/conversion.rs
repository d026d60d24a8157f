//! The one place where an error of sqlx becomes one of ours.

use sqlx::error::DatabaseError;

use super::Error;

/// `unique_violation`, `check_violation` and their like.
const CLASS_INTEGRITY_VIOLATION: &str = "23";
/// Values that the column can't take, such as a NUL in text.
const CLASS_DATA_EXCEPTION: &str = "22";
/// `serialization_failure`, `deadlock_detected`: the server rolled back.
const CLASS_TRANSACTION_ROLLBACK: &str = "40";
/// Wrong user or password.
pub(super) const CLASS_INVALID_AUTHORIZATION: &str = "28";
/// No such database.
pub(super) const CLASS_INVALID_CATALOG: &str = "3D";
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
/// The user lacks a right: the statement failed as a whole.
pub(super) const INSUFFICIENT_PRIVILEGE: &str = "42501";
/// `lock_timeout` passed.
const LOCK_NOT_AVAILABLE: &str = "55P03";
/// `statement_timeout` passed.
const QUERY_CANCELED: &str = "57014";
/// The server starts or stops and takes no connection.
const CANNOT_CONNECT_NOW: &str = "57P03";

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

/// What an error of sqlx is, by where it comes from.
pub(crate) fn convert(during: During, error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::PoolTimedOut => return Error::PoolTimedOut,
        sqlx::Error::PoolClosed => return Error::Closed,
        _ => {}
    }
    match during {
        During::Acquire => super::connection_error(&error),
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
    if code == INSUFFICIENT_PRIVILEGE {
        let reason = refused.message().to_owned();
        return Ok(Error::NotAllowed { reason });
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
pub(super) fn is_rolled_back(error: &sqlx::Error) -> bool {
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

pub(super) fn sqlstate(error: &dyn DatabaseError) -> String {
    error.code().map(|code| code.into_owned()).unwrap_or_default()
}

/// Whether the server said that the user lacks a right.
pub(crate) fn is_of_rights(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().map(sqlstate);
    code.as_deref() == Some(INSUFFICIENT_PRIVILEGE)
}
