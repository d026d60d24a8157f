use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use sqlx::error::{DatabaseError, ErrorKind};

use super::*;

/// An answer of a server with nothing but its SQLSTATE.
#[derive(Debug)]
struct Answer(&'static str);

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SQLSTATE {}", self.0)
    }
}

impl StdError for Answer {}

impl DatabaseError for Answer {
    fn message(&self) -> &str {
        self.0
    }
    fn code(&self) -> Option<Cow<'_, str>> {
        Some(self.0.into())
    }
    fn as_error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self
    }
    fn as_error_mut(&mut self) -> &mut (dyn StdError + Send + Sync + 'static) {
        self
    }
    fn into_error(self: Box<Self>) -> Box<dyn StdError + Send + Sync + 'static> {
        self
    }
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

fn answer(code: &'static str) -> sqlx::Error {
    sqlx::Error::Database(Box::new(Answer(code)))
}

fn lost_connection() -> sqlx::Error {
    sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into())
}

#[test]
fn a_statement_without_an_answer_may_have_happened() {
    for error in [
        lost_connection(),
        answer("57P01"),
        answer("08006"),
        answer("40003"),
        answer("XX000"),
        answer(""),
    ] {
        let error = convert(During::Statement("test"), error);
        assert_eq!(error.effect(), Effect::Unknown, "{error}");
    }
}

#[test]
fn a_statement_that_the_server_rolled_back_has_not_happened() {
    for code in [
        "40001", "40P01", "57014", "55P03", "23505", "21000", "22021", "42P01", "53100", "25006", "28P01",
    ] {
        let error = convert(During::Statement("test"), answer(code));
        assert_eq!(error.effect(), Effect::CertainlyNot, "{error}");
    }
}

#[test]
fn what_fails_before_a_connection_is_had_has_not_happened() {
    for error in [
        sqlx::Error::PoolTimedOut,
        sqlx::Error::PoolClosed,
        lost_connection(),
        answer("57P03"),
    ] {
        let error = convert(During::Acquire, error);
        assert_eq!(error.effect(), Effect::CertainlyNot, "{error}");
    }
}

#[test]
fn a_batch_that_loses_its_connection_before_commit_is_rolled_back() {
    let error = convert(During::Batch("test"), lost_connection());
    assert!(matches!(error, Error::BatchAborted(_)), "{error}");
    assert_eq!(error.effect(), Effect::CertainlyNot);
}

#[test]
fn only_a_certain_rollback_makes_a_failed_commit_known() {
    for error in [
        lost_connection(),
        answer("57014"),
        answer("57P01"),
        answer("53100"),
        answer("40003"),
    ] {
        let error = convert(During::Commit, error);
        assert!(matches!(error, Error::CommitUnknown { .. }), "{error}");
        assert_eq!(error.effect(), Effect::Unknown);
    }
    for code in ["40001", "40P01", "23505"] {
        let error = convert(During::Commit, answer(code));
        assert!(matches!(error, Error::BatchAborted(_)), "{error}");
        assert_eq!(error.effect(), Effect::CertainlyNot);
    }
}

#[test]
fn a_violated_key_is_a_bug_and_a_held_lock_is_not() {
    for code in ["23505", "23514", "21000", "22021"] {
        assert!(
            matches!(convert(During::Batch("test"), answer(code)), Error::Bug(_)),
            "{code}"
        );
    }
    let error = convert(During::Batch("the row"), answer("55P03"));
    assert!(
        matches!(error, Error::LockTimedOut { what: "the row" }),
        "{error}"
    );
}

#[test]
fn a_transaction_of_the_archive_is_unknown_only_from_commit_on() {
    let error = convert(During::Archive("flush"), lost_connection());
    assert!(
        matches!(error, Error::ArchiveAborted { what: "flush", .. }),
        "{error}"
    );
    assert_eq!(error.effect(), Effect::CertainlyNot);
    for error in [
        lost_connection(),
        answer("57014"),
        answer("57P01"),
        answer("40003"),
    ] {
        let error = convert(During::ArchiveCommit("flush"), error);
        assert!(
            matches!(error, Error::ArchiveCommitUnknown { what: "flush", .. }),
            "{error}"
        );
        assert_eq!(error.effect(), Effect::Unknown);
    }
    let error = convert(During::ArchiveCommit("flush"), answer("40P01"));
    assert!(matches!(error, Error::ArchiveAborted { .. }), "{error}");
    assert_eq!(error.effect(), Effect::CertainlyNot);
    assert!(matches!(
        convert(During::Archive("flush"), answer("55P03")),
        Error::LockTimedOut { what: "flush" }
    ));
}
