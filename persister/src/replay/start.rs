//! Where a partition starts, or what is missing. Pure.
//!
//! | the topic's log starts | the archive covers | decision |
//! |---|---|---|
//! | at 0 | whatever | fold all of it: it says more than the states do |
//! | above 0 | at least up to there | the states hold what is below the covered offset: fold from that on |
//! | above 0 | less, or nothing | records are missing that nobody has |
//! | whatever | beyond the log's end | this is not the log that was archived, or it lost its end: nothing is folded |

use wakelog_stream::Watermarks;

use crate::Error;

/// Where a partition starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// At this offset; above 0 states hold what comes before.
    At(i64),
    /// Nowhere: nobody has the records from one offset up to another.
    Missing {
        /// The first one.
        from: i64,
        /// The first one that the topic has.
        to: i64,
    },
}

/// Decides where a partition starts. `covered`: below which offset the archive's states hold everything; 0 if it has none.
/// [`Error::LogTooShort`].
pub(super) fn start(partition: i32, watermarks: &Watermarks, covered: i64) -> Result<Start, Error> {
    let (low, high) = (watermarks.low, watermarks.high);
    if covered > high {
        return Err(Error::LogTooShort {
            partition,
            next_offset: covered,
            high,
        });
    }
    if low == 0 {
        return Ok(Start::At(0));
    }
    if covered < low {
        return Ok(Start::Missing {
            from: covered,
            to: low,
        });
    }
    Ok(Start::At(covered))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(low: i64, high: i64, covered: i64) -> Result<Start, Error> {
        start(3, &Watermarks { low, high }, covered)
    }

    #[test]
    fn exactly_once_fold_starts_where_the_topic_or_the_states_begin() {
        assert_eq!(decide(0, 0, 0).unwrap(), Start::At(0));
        assert_eq!(decide(0, 90, 40).unwrap(), Start::At(0));
        assert_eq!(decide(40, 90, 40).unwrap(), Start::At(40));
        assert_eq!(decide(40, 90, 70).unwrap(), Start::At(70));
        assert_eq!(decide(90, 90, 90).unwrap(), Start::At(90));
    }

    #[test]
    fn no_silent_gap_where_nobody_has_the_records() {
        assert_eq!(decide(40, 90, 39).unwrap(), Start::Missing { from: 39, to: 40 });
        assert_eq!(decide(1, 1, 0).unwrap(), Start::Missing { from: 0, to: 1 });
    }

    #[test]
    fn a_log_that_ends_below_what_was_archived_is_another_one() {
        for (low, high, covered) in [(0, 0, 1), (0, 90, 91), (40, 90, 91)] {
            assert!(matches!(
                decide(low, high, covered),
                Err(Error::LogTooShort { partition: 3, .. })
            ));
        }
    }
}
