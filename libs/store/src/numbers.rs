//! u64 of the protocol against bigint of the database: a number that does not fit is an error and never wraps.

use crate::Error;

/// A protocol number as the database stores it.
pub(crate) fn to_bigint(what: &'static str, value: u64) -> Result<i64, Error> {
    i64::try_from(value).map_err(|_| Error::OutOfRange { what, value })
}

/// A protocol number as the database stores it in an integer column.
pub(crate) fn to_integer(what: &'static str, value: u32) -> Result<i32, Error> {
    i32::try_from(value).map_err(|_| Error::OutOfRange {
        what,
        value: value.into(),
    })
}

/// A stored bigint that can't be negative.
pub(crate) fn from_bigint(what: &'static str, stored: i64) -> Result<u64, Error> {
    u64::try_from(stored).map_err(|_| Error::Bug(format!("stored {what} is negative: {stored}")))
}

/// A stored integer that can't be negative.
pub(crate) fn from_integer(what: &'static str, stored: i32) -> Result<u32, Error> {
    u32::try_from(stored).map_err(|_| Error::Bug(format!("stored {what} is negative: {stored}")))
}

/// A count, for a metric or a comparison; saturates.
pub(crate) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A number that only bounds what is read: one too large for the database means "no bound".
pub(crate) fn clamp_bigint(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
